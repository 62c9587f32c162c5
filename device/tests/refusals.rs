//! Plans and sources that are refused, with the texts of the messages.

mod common;

use common::{launch, on_every_device, run, say_skipped};
use tilewright_device::{
    Arg, BufferSpec, BuildOptions, ChannelType, DeviceError, Launch, LaunchPlan, RunOptions, Scalar, Session,
};

const FILL: &str = "
kernel void fill(global uchar *a, int n) {
  for (int i = 0; i < n; i++) a[i] = 7;
}
kernel void touch(local int *tile, global int *a) { tile[0] = 1; a[0] = tile[0]; }
kernel __attribute__((reqd_work_group_size(2, 1, 1))) void pair(global int *a) { a[0] = 1; }
kernel void texture(write_only image2d_t t) { write_imagef(t, (int2)(0, 0), (float4)(1.0f)); }";

fn fill(n: i32) -> Launch {
    launch("fill", [1, 1, 1], vec![Arg::Memory(0), Arg::Scalar(Scalar::I32(n))])
}

fn refusal(session: &Session, buffers: Vec<BufferSpec>, launches: Vec<Launch>) -> DeviceError {
    run(session, FILL, buffers, launches).expect_err("the plan has to be refused")
}

#[track_caller]
fn assert_limit(error: &DeviceError, part: &str, sizes: (u64, u64)) {
    match error {
        DeviceError::Limit { what, asked, limit } => {
            assert!(what.contains(part), "{what}");
            assert_eq!((*asked, *limit), sizes);
        }
        other => panic!("not a limit: {other}"),
    }
}

#[track_caller]
fn assert_plan(error: &DeviceError, part: &str) {
    assert!(matches!(error, DeviceError::Plan(text) if text.contains(part)), "{error}");
}

#[test]
fn a_build_error_shows_log_and_line() {
    on_every_device(|session| {
        let source = "kernel void f(global int *a) {\n  int b = 1;\n  a[0] = b + missing;\n}\n";
        let error = session.build(source, &BuildOptions::default()).expect_err("no such name");
        let DeviceError::Build { log, source_listing, .. } = &error else {
            panic!("not a build error: {error}");
        };
        assert!(log.contains("missing"), "{log}");
        assert!(source_listing.contains(">   3 |   a[0] = b + missing;"), "{error}");
        assert!(source_listing.contains("    2 |   int b = 1;"), "{error}");
        assert!(!error.is_absent());
    });
}

#[test]
fn flags_that_relax_arithmetic_are_refused() {
    on_every_device(|session| {
        for flag in ["-cl-fast-relaxed-math", "-D N=1 -cl-mad-enable"] {
            let options = BuildOptions { flags: vec![flag.into()], ..BuildOptions::default() };
            let error = session.build(FILL, &options).expect_err("refused");
            assert!(matches!(error, DeviceError::Flag { .. }), "{error}");
        }
        let options =
            BuildOptions { flags: vec!["-D N=4".into()], correctly_rounded: false, ..BuildOptions::default() };
        let source = "kernel void f(global int *a) { a[0] = N; }";
        let program = session.build(source, &options).expect("builds");
        assert_eq!(program.kernels(), ["f"]);
        assert!(!program.correctly_rounded());
    });
}

#[test]
fn a_store_past_the_end_touches_the_guard() {
    on_every_device(|session| {
        let buffers = |bytes| vec![BufferSpec::new("A", bytes).read_back()];
        assert!(run(session, FILL, buffers(10), vec![fill(10)]).is_ok());
        let error = refusal(session, buffers(10), vec![fill(13)]);
        let DeviceError::GuardTouched(touched) = &error else {
            panic!("not a guard: {error}");
        };
        let seen: Vec<_> = touched.iter().map(|t| (t.buffer.as_str(), t.first_byte, t.changed)).collect();
        assert_eq!(seen, [("A", 10, 3)]);
        let empty = refusal(session, buffers(0), vec![fill(1)]);
        assert!(matches!(empty, DeviceError::GuardTouched(_)), "{empty}");
    });
}

#[test]
fn without_guards_only_the_buffer_is_allocated() {
    on_every_device(|session| {
        let program = session.build(FILL, &BuildOptions::default()).expect("builds");
        let options = RunOptions { guard_bytes: 0, ..RunOptions::default() };
        let plan = LaunchPlan { buffers: vec![BufferSpec::new("A", 10).read_back()], launches: vec![fill(10)] };
        let output = session.run(&program, &plan, &options).expect("runs");
        assert_eq!(output.buffers, [Some(vec![7; 10])]);
    });
}

#[test]
fn memory_beyond_the_device_is_refused() {
    on_every_device(|session| {
        let info = session.info();
        let big = refusal(session, vec![BufferSpec::new("big", info.max_alloc_bytes)], vec![]);
        assert_limit(&big, "`big`", (info.max_alloc_bytes + RunOptions::default().guard_bytes, info.max_alloc_bytes));
        let half = BufferSpec::new("half", info.max_alloc_bytes / 2);
        let count = usize::try_from(2 * info.global_memory_bytes / info.max_alloc_bytes + 2);
        let many = refusal(session, vec![half; count.expect("a few buffers")], vec![]);
        assert!(matches!(&many, DeviceError::Limit { what, .. } if what.contains("together")));
        let endless = refusal(session, vec![BufferSpec::new("endless", u64::MAX)], vec![]);
        assert_limit(&endless, "`endless`", (u64::MAX, info.max_alloc_bytes));
    });
}

#[test]
fn images_beyond_the_device_are_refused() {
    on_every_device(|session| {
        let info = session.info();
        if !info.images {
            say_skipped(&format!("{} has no images", info.label()));
            return;
        }
        let (width, height) = (info.image2d_max_width, info.image2d_max_height);
        let image = |w, h| vec![BufferSpec::image2d("T", w, h, ChannelType::U8)];
        let wide = refusal(session, image(width + 1, 1), vec![]);
        assert_limit(&wide, "width", (width + 1, width));
        let high = refusal(session, image(1, height + 1), vec![]);
        assert_limit(&high, "height", (height + 1, height));
        let mut wrong = BufferSpec::image2d("T", 2, 2, ChannelType::F32);
        wrong.bytes = 1;
        assert_plan(&refusal(session, vec![wrong], vec![]), "64 bytes");
    });
}

#[test]
fn work_groups_that_do_not_fit_are_refused() {
    on_every_device(|session| {
        let info = session.info();
        let sized = |global, local| Launch { global, local: Some(local), ..fill(1) };
        let refused = |launch| refusal(session, vec![BufferSpec::new("A", 8)], vec![launch]);
        assert_plan(&refused(sized([5, 1, 1], [2, 1, 1])), "2 does not divide global size 5");
        assert_plan(&refused(sized([4, 4, 1], [2, 0, 1])), "axis 1");
        let most = info.max_work_item_sizes;
        assert_limit(&refused(sized([most[0] + 1, 1, 1], [most[0] + 1, 1, 1])), "axis 0", (most[0] + 1, most[0]));
        let volume: u64 = most.iter().product();
        if volume > info.max_work_group_size {
            assert_limit(&refused(sized(most, most)), "work-group size", (volume, info.max_work_group_size));
        }
        let mut pair = launch("pair", [4, 1, 1], vec![Arg::Memory(0)]);
        pair.local = Some([4, 1, 1]);
        assert_plan(&refused(pair), "demands work-groups of [2, 1, 1]");
    });
}

#[test]
fn local_memory_beyond_the_device_is_refused() {
    on_every_device(|session| {
        let limit = session.info().local_memory_bytes;
        let touch = launch("touch", [1, 1, 1], vec![Arg::Local(limit + 1), Arg::Memory(0)]);
        let error = refusal(session, vec![BufferSpec::new("A", 4)], vec![touch]);
        assert_limit(&error, "`touch`", (limit + 1, limit));
    });
}

#[test]
fn a_plan_that_does_not_fit_its_kernels_is_refused() {
    on_every_device(|session| {
        let refused = |kernel, args| {
            let buffers = vec![BufferSpec::new("A", 16)];
            refusal(session, buffers, vec![launch(kernel, [1, 1, 1], args)])
        };
        let one = Arg::Scalar(Scalar::I32(1));
        assert_plan(&refused("full", vec![]), "no kernel `full` among");
        assert_plan(&refused("fill", vec![Arg::Memory(0)]), "takes 2 arguments, 1 are given");
        assert_plan(&refused("fill", vec![Arg::Memory(3), one.clone()]), "buffer 3 of 1");
        assert_plan(&refused("fill", vec![one.clone(), one.clone()]), "argument 0 is declared");
        let long = Arg::Scalar(Scalar::I64(1));
        assert_plan(&refused("fill", vec![Arg::Memory(0), long]), "`int` and given a value of 8");
        assert_plan(&refused("touch", vec![one, Arg::Memory(0)]), "argument 0");
        assert_plan(&refused("texture", vec![Arg::Memory(0)]), "given a buffer");
        let short = BufferSpec::new("A", 16).with_data(vec![0; 3]);
        assert_plan(&refusal(session, vec![short], vec![]), "has 16 bytes, its data 3");
    });
}
