//! Images from the session's pool of textures, and snapshots in the middle of a run, on every device.

mod common;

use common::{f32_bytes, f32s, launch, on_every_device, run, say_skipped};
use tilewright_device::{
    Arg, BufferSpec, BuildOptions, ChannelType, DeviceError, Launch, LaunchPlan, RunOptions, Session, Snapshot,
};

const SOURCE: &str = "
constant sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void pack(global const float *a, write_only image2d_t t, int width) {
  int x = get_global_id(0), y = get_global_id(1);
  write_imagef(t, (int2)(x, y), vload4(y * width + x, a));
}
kernel void twice(read_only image2d_t t, global float *b, int width) {
  int x = get_global_id(0), y = get_global_id(1);
  vstore4(2.0f * read_imagef(t, at, (int2)(x, y)), y * width + x, b);
}";

fn values(texels: u64) -> Vec<f32> {
    (0..texels * 4).map(|i| f32::from(u16::try_from(i).expect("few")) + 0.5).collect()
}

fn width_arg(width: u64) -> Arg {
    Arg::Scalar(tilewright_device::Scalar::I32(i32::try_from(width).expect("small")))
}

/// A plan that computes `b = 2 a` through a scratch image; without the first launch if `stale`.
fn parts(width: u64, height: u64, stale: bool) -> (Vec<BufferSpec>, Vec<Launch>) {
    let texels = width * height;
    let buffers = vec![
        BufferSpec::new("a", texels * 16).with_data(f32_bytes(&values(texels))),
        BufferSpec::image2d("t", width, height, ChannelType::F32).scratch(),
        BufferSpec::new("b", texels * 16).read_back(),
    ];
    let size = [width, height, 1];
    let pack = launch("pack", size, vec![Arg::Memory(0), Arg::Memory(1), width_arg(width)]);
    let twice = launch("twice", size, vec![Arg::Memory(1), Arg::Memory(2), width_arg(width)]);
    (buffers, if stale { vec![twice] } else { vec![pack, twice] })
}

fn twice(session: &Session, width: u64, height: u64, stale: bool) -> Vec<f32> {
    let (buffers, launches) = parts(width, height, stale);
    let output = run(session, SOURCE, buffers, launches).expect("runs");
    f32s(output.buffers[2].as_ref().expect("read back"))
}

fn on_every_device_with_images(case: impl Fn(&Session)) {
    on_every_device(|session| if session.info().images { case(session) } else { say_skipped("no images") });
}

#[test]
fn a_second_run_uses_the_texture_of_the_first() {
    on_every_device_with_images(|session| {
        let expected = |texels| values(texels).iter().map(|value| 2.0 * value).collect::<Vec<_>>();
        assert_eq!(twice(session, 5, 7, false), expected(35));
        assert_eq!(twice(session, 5, 7, false), expected(35));
        assert_eq!(twice(session, 3, 6, false), expected(18), "a part of a larger one");
        let stats = session.scratch_stats();
        assert_eq!((stats.requests, stats.created, stats.hits, stats.grown), (3, 1, 2, 0));
        assert_eq!(twice(session, 6, 5, false), expected(30));
        let stats = session.scratch_stats();
        assert_eq!((stats.grown, stats.bytes_held, stats.bytes_in_use), (1, 6 * 7 * 16, 0));
        session.trim_scratch();
        assert_eq!(session.scratch_stats().bytes_held, 0);
    });
}

#[test]
fn nothing_of_an_earlier_run_is_left_in_a_texture() {
    on_every_device_with_images(|session| {
        assert!(twice(session, 5, 7, false).iter().all(|value| !value.is_nan()));
        assert!(twice(session, 5, 7, true).iter().all(|value| value.is_nan()), "poisoned");
        assert_eq!(session.scratch_stats().hits, 1);
    });
}

#[test]
fn a_failed_run_gives_its_textures_back() {
    on_every_device_with_images(|session| {
        let (buffers, mut launches) = parts(5, 7, false);
        launches.push(launch("missing", [1, 1, 1], vec![]));
        assert!(run(session, SOURCE, buffers, launches).is_err());
        let stats = session.scratch_stats();
        assert_eq!((stats.created, stats.bytes_in_use, stats.bytes_held), (1, 0, 5 * 7 * 16));
        twice(session, 5, 7, false);
        assert_eq!(session.scratch_stats().hits, 1);
    });
}

#[test]
fn two_scratch_images_of_one_run_are_two_textures() {
    on_every_device_with_images(|session| {
        let texels = 15;
        let buffers = vec![
            BufferSpec::new("a", texels * 16).with_data(f32_bytes(&values(texels))),
            BufferSpec::image2d("t", 5, 3, ChannelType::F32).scratch(),
            BufferSpec::image2d("u", 5, 3, ChannelType::F32).scratch(),
            BufferSpec::new("b", texels * 16).read_back(),
        ];
        let args = |image| vec![Arg::Memory(0), Arg::Memory(image), width_arg(5)];
        let unpack = vec![Arg::Memory(2), Arg::Memory(3), width_arg(5)];
        let launches = vec![launch("pack", [5, 3, 1], args(1)), launch("twice", [5, 3, 1], unpack)];
        let output = run(session, SOURCE, buffers, launches).expect("runs");
        let result = f32s(output.buffers[3].as_ref().expect("read back"));
        assert!(result.iter().all(|value| value.is_nan()), "`u` was never written");
    });
}

#[test]
fn only_images_without_contents_come_from_the_pool() {
    on_every_device(|session| {
        let image = || BufferSpec::image2d("t", 5, 7, ChannelType::F32).scratch();
        for spec in [
            BufferSpec::new("b", 16).scratch(),
            image().read_back(),
            image().filled(0),
            image().with_data(vec![0; 5 * 7 * 16]),
        ] {
            let error = run(session, SOURCE, vec![spec], vec![]).expect_err("refused");
            assert!(matches!(&error, DeviceError::Plan(text) if text.contains("pool of textures")), "{error}");
        }
        assert_eq!(session.scratch_stats().requests, 0);
    });
}

#[test]
fn a_snapshot_shows_memory_in_the_middle_of_a_run() {
    const STEPS: &str = "kernel void add(global int *a) { a[get_global_id(0)] += 1; }";
    on_every_device(|session| {
        let ints = |values: [i32; 3]| values.iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<u8>>();
        let program = session.build(STEPS, &BuildOptions::default()).expect("builds");
        let add = || launch("add", [3, 1, 1], vec![Arg::Memory(0)]);
        let plan = LaunchPlan {
            buffers: vec![BufferSpec::new("a", 12).with_data(ints([5, 6, 7])).read_back(), BufferSpec::new("empty", 0)],
            launches: vec![add(), add(), launch("add", [0, 1, 1], vec![Arg::Memory(0)])],
        };
        let at = |after, memory| Snapshot { after, memory };
        let snapshots = vec![at(1, 0), at(0, 0), at(2, 0), at(0, 1)];
        let options = RunOptions { snapshots, ..RunOptions::default() };
        let output = session.run(&program, &plan, &options).expect("runs");
        assert_eq!(output.snapshots, [ints([7, 8, 9]), ints([6, 7, 8]), ints([7, 8, 9]), vec![]]);
        for wrong in [at(3, 0), at(0, 2)] {
            let options = RunOptions { snapshots: vec![wrong], ..RunOptions::default() };
            let error = session.run(&program, &plan, &options).expect_err("refused");
            assert!(matches!(&error, DeviceError::Plan(text) if text.contains("snapshot")), "{error}");
        }
    });
}

#[test]
fn a_snapshot_shows_a_scratch_image_that_is_larger_than_asked_for() {
    on_every_device_with_images(|session| {
        twice(session, 6, 7, false);
        let (buffers, launches) = parts(5, 3, false);
        let program = session.build(SOURCE, &BuildOptions::default()).expect("builds");
        let options = RunOptions { snapshots: vec![Snapshot { after: 0, memory: 1 }], ..RunOptions::default() };
        let output = session.run(&program, &LaunchPlan { buffers, launches }, &options).expect("runs");
        assert_eq!(session.scratch_stats().hits, 1);
        assert_eq!(f32s(&output.snapshots[0]), values(15));
    });
}

#[test]
fn launches_of_several_programs_share_memory() {
    on_every_device(|session| {
        let build = |source: &str| session.build(source, &BuildOptions::default()).expect("builds");
        // The same name in both.
        let add = build("kernel void f(global int *a) { a[0] += 5; }");
        let double = build("kernel void f(global int *a) { a[0] *= 2; }");
        let f = || launch("f", [1, 1, 1], vec![Arg::Memory(0)]);
        let plan =
            LaunchPlan { buffers: vec![BufferSpec::new("a", 4).filled(0).read_back()], launches: vec![f(), f(), f()] };
        let output = session.run_programs(&[&add, &double, &add], &plan, &RunOptions::default()).expect("runs");
        assert_eq!(output.buffers[0], Some(15_i32.to_ne_bytes().to_vec()));
        assert!(session.run_programs(&[&add], &plan, &RunOptions::default()).is_err());
    });
}
