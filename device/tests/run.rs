//! Runs plans on every device.

mod common;

use common::{f32_bytes, f32s, launch, on_every_device, run, say_skipped};
use tilewright_device::{Arg, BufferSpec, BuildOptions, ChannelType, LaunchPlan, POISON, RunOptions, Scalar, Session};

const ADD: &str = "
kernel void add(global const float *a, global const float *b, global float *c) {
  size_t i = get_global_id(0);
  c[i] = a[i] + b[i];
}
kernel void scale(global const float *a, global float *b, float by) {
  size_t i = get_global_id(0);
  b[i] = a[i] * by;
}";

#[test]
fn vectors_are_added() {
    on_every_device(|session| {
        let buffers = vec![
            BufferSpec::new("a", 12).with_data(f32_bytes(&[1.0, 2.0, 3.0])),
            BufferSpec::new("b", 12).with_data(f32_bytes(&[0.5, 0.25, 0.125])),
            BufferSpec::new("c", 12).read_back(),
        ];
        let args = (0..3).map(Arg::Memory).collect();
        let output = run(session, ADD, buffers, vec![launch("add", [3, 1, 1], args)]).expect("runs");
        assert_eq!(output.buffers[..2], [None, None]);
        assert_eq!(output.buffers[2], Some(f32_bytes(&[1.5, 2.25, 3.125])));
        assert!(output.launch_nanoseconds[0].is_some());
    });
}

#[test]
fn launches_run_in_order_through_an_intermediate_buffer() {
    on_every_device(|session| {
        let buffers = vec![
            BufferSpec::new("a", 16).with_data(f32_bytes(&[1.0, 2.0, 3.0, 4.0])),
            BufferSpec::new("between", 16),
            BufferSpec::new("out", 16).read_back(),
        ];
        let scale = |from, to, by| {
            let args = vec![Arg::Memory(from), Arg::Memory(to), Arg::Scalar(Scalar::F32(by))];
            launch("scale", [4, 1, 1], args)
        };
        let add = launch("add", [4, 1, 1], vec![Arg::Memory(0), Arg::Memory(1), Arg::Memory(2)]);
        let launches = vec![scale(0, 1, 10.0), add, scale(2, 1, 2.0), scale(1, 2, 0.5)];
        let output = run(session, ADD, buffers, launches).expect("runs");
        assert_eq!(output.buffers[2], Some(f32_bytes(&[11.0, 22.0, 33.0, 44.0])));
        assert_eq!(output.launch_nanoseconds.len(), 4);
    });
}

#[test]
fn memory_without_contents_is_poisoned_and_empty_work_is_none() {
    on_every_device(|session| {
        let buffers = vec![
            BufferSpec::new("empty", 0).read_back(),
            BufferSpec::new("zero", 5).filled(0).read_back(),
            BufferSpec::new("poison", 5).read_back(),
            BufferSpec::image2d("flat", 0, 4, ChannelType::F32).read_back(),
        ];
        let add = launch("add", [0, 1, 1], vec![Arg::Memory(0); 3]);
        let output = run(session, ADD, buffers, vec![add]).expect("runs");
        let expected = [vec![], vec![0; 5], vec![POISON; 5], vec![]].map(Some);
        assert_eq!(output.buffers, expected);
        assert_eq!(output.launch_nanoseconds, [None]);
    });
}

#[test]
fn images_hold_what_kernels_write_and_return_what_the_host_wrote() {
    const COPY: &str = "
        const sampler_t at = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
        kernel void turn(read_only image2d_t from, write_only image2d_t to) {
          int x = get_global_id(0), y = get_global_id(1);
          write_imagef(to, (int2)(y, x), read_imagef(from, at, (int2)(x, y)) + 1.0f);
        }";
    on_every_device(|session| {
        if !session.info().images {
            say_skipped(&format!("{} has no images", session.info().label()));
            return;
        }
        let (width, height) = (5_u16, 3_u16);
        let texel = |x: u16, y: u16, lane: u16| f32::from(100 * y + 10 * x + lane);
        let values = |columns: u16, rows: u16, value: &dyn Fn(u16, u16, u16) -> f32| {
            let lanes = |x, y| (0..4).map(move |lane| (x, y, lane));
            let places = (0..rows).flat_map(|y| (0..columns).flat_map(move |x| lanes(x, y)));
            f32_bytes(&places.map(|(x, y, lane)| value(x, y, lane)).collect::<Vec<_>>())
        };
        let from = values(width, height, &texel);
        let turned = values(height, width, &|x, y, lane| texel(y, x, lane) + 1.0);
        let image = |name, width, height| BufferSpec::image2d(name, width, height, ChannelType::F32);
        let buffers = vec![image("from", 5, 3).with_data(from.clone()).read_back(), image("to", 3, 5).read_back()];
        let args = vec![Arg::Memory(0), Arg::Memory(1)];
        let output = run(session, COPY, buffers, vec![launch("turn", [5, 3, 1], args)]).expect("runs");
        assert_eq!(output.buffers, [Some(from), Some(turned)]);
    });
}

#[test]
fn every_channel_type_comes_back_as_it_was() {
    use ChannelType::{F16, F32, I8, I16, I32, U8, U16, U32};
    on_every_device(|session| {
        for channel in [F32, F16, I8, I16, I32, U8, U16, U32] {
            let spec = BufferSpec::image2d("image", 3, 2, channel);
            let data: Vec<u8> = (0..spec.bytes).map(|i| u8::try_from(i % 100).unwrap_or(0)).collect();
            let output = run(session, ADD, vec![spec.with_data(data.clone()).read_back()], vec![]);
            match output {
                Err(error) if !session.info().images => say_skipped(&error.to_string()),
                output => assert_eq!(output.expect("runs").buffers, [Some(data)], "{channel:?}"),
            }
        }
    });
}

#[test]
fn local_memory_and_values_of_every_size_reach_the_kernel() {
    const SOURCE: &str = "
        kernel void turn(global int *a, local int *tile, char c, ushort s, long l, uint4 v) {
          int i = get_local_id(0), n = get_local_size(0);
          tile[i] = a[get_global_id(0)];
          barrier(CLK_LOCAL_MEM_FENCE);
          a[get_global_id(0)] = tile[n - 1 - i] + c + s + (int)(l >> 32) + v.w;
        }";
    on_every_device(|session| {
        let bytes = |values: &[i32]| values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>();
        let vector = bytes(&[1, 2, 3, 4]);
        let mut turn = launch(
            "turn",
            [4, 1, 1],
            vec![
                Arg::Memory(0),
                Arg::Local(8),
                Arg::Scalar(Scalar::I8(-1)),
                Arg::Scalar(Scalar::U16(1000)),
                Arg::Scalar(Scalar::I64(7 << 32)),
                Arg::Scalar(Scalar::Bytes(vector)),
            ],
        );
        turn.local = Some([2, 1, 1]);
        let buffers = vec![BufferSpec::new("a", 16).with_data(bytes(&[1, 2, 3, 4])).read_back()];
        let output = run(session, SOURCE, buffers, vec![turn]).expect("runs");
        assert_eq!(output.buffers, [Some(bytes(&[1012, 1011, 1014, 1013]))]);
    });
}

/// Operands for which an approximate division is sometimes wrong in the last place.
fn operands(n: u16) -> Vec<f32> {
    (0..n).map(|i| 1.0 + f32::from(i) * 0.000_731 + f32::from(i % 17) * 3.3).collect()
}

#[test]
fn division_and_square_root_round_correctly_where_the_device_says_so() {
    const SOURCE: &str = "
        #pragma OPENCL FP_CONTRACT OFF
        kernel void divide(global const float *a, global const float *b, global float *q, global float *r) {
          size_t i = get_global_id(0);
          q[i] = a[i] / b[i];
          r[i] = sqrt(a[i]);
        }";
    on_every_device(|session| {
        let program = session.build(SOURCE, &BuildOptions::default()).expect("builds");
        assert_eq!(program.correctly_rounded(), session.info().correctly_rounded_divide_sqrt);
        if !program.correctly_rounded() {
            say_skipped(&format!("{} does not round correctly", session.info().label()));
            return;
        }
        let a = operands(4096);
        let b: Vec<f32> = a.iter().rev().copied().collect();
        let plan = LaunchPlan {
            buffers: vec![
                BufferSpec::new("a", 4 * 4096).with_data(f32_bytes(&a)),
                BufferSpec::new("b", 4 * 4096).with_data(f32_bytes(&b)),
                BufferSpec::new("q", 4 * 4096).read_back(),
                BufferSpec::new("r", 4 * 4096).read_back(),
            ],
            launches: vec![launch("divide", [4096, 1, 1], (0..4).map(Arg::Memory).collect())],
        };
        let output = session.run(&program, &plan, &RunOptions::default()).expect("runs");
        let quotients: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a / b).collect();
        let roots: Vec<f32> = a.iter().map(|a| a.sqrt()).collect();
        let results = |place: usize| f32s(output.buffers[place].as_ref().expect("read back"));
        assert_eq!(results(2), quotients);
        assert_eq!(results(3), roots);
    });
}

#[test]
fn sessions_and_programs_work_from_several_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Session>();
    is_shared::<tilewright_device::Program>();
    let add = |session: &Session, by: f32| {
        let buffers =
            vec![BufferSpec::new("a", 256).with_data(f32_bytes(&[by; 64])), BufferSpec::new("b", 256).read_back()];
        let args = vec![Arg::Memory(0), Arg::Memory(1), Arg::Scalar(Scalar::F32(2.0))];
        let output = run(session, ADD, buffers, vec![launch("scale", [64, 1, 1], args)]).expect("runs");
        assert_eq!(output.buffers[1], Some(f32_bytes(&[by * 2.0; 64])));
    };
    on_every_device(|shared| {
        std::thread::scope(|scope| {
            for worker in 0..4_u8 {
                scope.spawn(move || {
                    let own = Session::open(shared.info()).expect("opens");
                    for round in 0..5_u8 {
                        add(shared, f32::from(worker));
                        add(&own, f32::from(round));
                    }
                });
            }
        });
    });
}
