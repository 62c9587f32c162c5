//! Textures from the command line: `check`, `opt` and `compile` on programs that have them, and the limits that they are
//! held against.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};

const EXAMPLES: [&str; 5] =
    ["addone.py", "one_channel_texture.py", "separators_texture.py", "conv2d_texture.py", "depthwise_texture.py"];

fn example(name: &str) -> String {
    format!("examples/{name}")
}

#[test]
fn every_example_is_proved_and_interpreted_through_the_texture_passes() {
    for name in EXAMPLES {
        let run = tilewright(&["check", "--device", "none", "--format", "json", &example(name)]);
        assert_eq!(run.code, Some(0), "{name}: {run:?}");
        let report = run.json();
        assert_eq!(report["verdict"], "proved", "{name}");
        let rows = report["passes"].as_array().unwrap();
        let lowered = rows.iter().find(|row| row["name"] == "lower_texture").unwrap();
        for wanted in ["texture", "specification", "injective", "simulation"] {
            let proved = |row: &serde_json::Value| row["obligation"] == wanted && row["verdict"] == "proved";
            assert!(lowered["obligations"].as_array().unwrap().iter().any(proved), "{name}: {wanted}");
        }
        let stages: Vec<_> = report["engines"].as_array().unwrap().iter().map(|row| row["stage"].clone()).collect();
        assert!(stages.contains(&"lower_texture".into()), "{name}: {stages:?}");
        // Without a device there is what OpenCL promises.
        let limits = &report["functions"][0]["texture_limits"];
        assert_eq!((limits["width"].as_u64(), limits["height"].as_u64()), (Some(8192), Some(8192)), "{name}");
        assert!(limits["from"].as_str().unwrap().contains("OpenCL 1.2"), "{limits}");
    }
}

#[test]
fn opt_prints_the_builtins_and_reads_them_back() {
    let passes = "apply_buffer_transforms,vectorize,lower_texture";
    let run = tilewright(&["opt", "-p", passes, "--limits", "9x70", &example("separators_texture.py")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    for said in [
        "\"texture_limits\": \"9x70\"",
        "A_texture = T.texture2d_alloca(height=70, width=9, dtype=\"float32\", scope=\"texture\")",
        "T.texture2d_store(A_texture, row=",
        "T.texture2d_load(A_texture, row=",
        ", lane=c % 4)",
    ] {
        assert!(run.stdout.contains(said), "{said}: {}", run.stdout);
    }
    let again = tilewright_with_input(&["opt", "-p", "lower_texture", "-"], &run.stdout);
    assert_eq!(again.stdout, run.stdout, "a second run changes nothing");
    assert_eq!(tilewright_with_input(&["check", "--device", "none", "-"], &run.stdout).code, Some(0));
}

#[test]
fn a_texture_above_the_limits_is_refused_with_their_origin() {
    let file = example("addone.py");
    for command in [vec!["check", "--device", "none"], vec!["opt", "-p", "lower_texture"]] {
        let args = |limits: &'static str| [&command[..], &["--limits", limits, &file]].concat();
        assert_eq!(tilewright(&args("32x32")).code, Some(0), "{command:?}");
        for (limits, said) in [("31x32", "width 32, but 31 texels"), ("32x31", "height 32, but 31 rows")] {
            let run = tilewright(&args(limits));
            assert_eq!(run.code, Some(2), "{command:?} {run:?}");
            assert!(run.stderr.contains("texture-limits") && run.stderr.contains(said), "{}", run.stderr);
            assert!(run.stdout.is_empty(), "{run:?}");
        }
    }
    let run = tilewright(&["check", "--device", "none", "--limits", "31x32", &file]);
    assert!(run.stderr.contains("the limits 31x32 are those of --limits"), "{}", run.stderr);
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out").to_str().unwrap().to_owned();
    assert_eq!(tilewright(&["compile", &file, "-o", &out, "--limits", "31x32"]).code, Some(2));
    for bad in ["16384", "0x4", "4X4", "x", "-1x4", "4294967296x4", ""] {
        let run = tilewright(&["check", &format!("--limits={bad}"), &file]);
        assert_eq!(run.code, Some(2), "{bad}: {run:?}");
    }
}

const SYMBOLIC: &str = "from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    X = T.match_buffer(a, (n, 5, 4), \"float32\")
    Y = T.match_buffer(b, (n, 5, 4), \"float32\")
    T.func_attr({\"texture_limits\": \"2048x1024\"})
    Xt = T.alloc_buffer((n, 5, 4), \"float32\", scope=\"texture\")
    for i in T.thread_binding(n, thread=\"blockIdx.x\"):
        for j, c in T.grid(5, 4):
            Xt[i, j, c] = X[i, j, c]
    for i in T.thread_binding(n, thread=\"blockIdx.x\"):
        for j, c in T.grid(5, 4):
            Y[i, j, c] = Xt[i, j, 3 - c]
";

#[test]
fn the_function_s_own_limits_win_and_symbolic_extents_are_left_to_the_launch() {
    let args = ["check", "--device", "none", "--limits", "3x3", "--format", "json", "-"];
    let run = tilewright_with_input(&args, SYMBOLIC);
    assert_eq!(run.code, Some(0), "{run:?}");
    let limits = &run.json()["functions"][0]["texture_limits"];
    assert_eq!((limits["width"].as_u64(), limits["height"].as_u64()), (Some(2048), Some(1024)));
    assert!(limits["from"].as_str().unwrap().starts_with("the function"), "{limits}");
    assert_eq!(limits["checked_at_launch"], serde_json::json!(["Xt"]));
    let text = tilewright_with_input(&["check", "--device", "none", "-"], SYMBOLIC).stdout;
    assert!(text.contains("at most 2048 wide and 1024 high, by the function"), "{text}");
    assert!(text.contains("the launch checks the symbolic extents of Xt"), "{text}");
}

#[test]
fn a_reduction_that_accumulates_in_a_texture_is_told_to_use_a_cache() {
    let text = "from tvm import te
A = te.placeholder((5, 7, 4, 3), name=\"A\")
r = te.reduce_axis((0, 3), name=\"r\")
B = te.compute((5, 7, 4), lambda i, j, c: te.sum(A[i, j, c, r], axis=r), name=\"B\")
C = te.compute((5, 7, 4), lambda i, j, c: B[i, j, c] * 2.0, name=\"C\")
s = te.create_schedule(C.op)
s[B].set_scope(\"global.texture\")
";
    let run = tilewright_with_input(&["check", "--device", "none", "-"], text);
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(
        run.stderr.contains("texture-store") && run.stderr.contains("cache_write(.., \"local\")"),
        "{}",
        run.stderr
    );
    let cached = format!("{text}acc = s.cache_write(B, \"local\")\n");
    let run = tilewright_with_input(&["check", "--device", "none", "-"], &cached);
    assert_eq!(run.code, Some(0), "{run:?}");
}

/// A copy through a texture cache, with the threads that copy it in tiles that do not divide it.
fn cached(scope: &str, layout: &str, split: &str) -> String {
    format!(
        "from tvm import te
A = te.placeholder((2, 7, 9, 18), name=\"A\", dtype=\"int16\")
B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] * 3, name=\"B\")
s = te.create_schedule(B.op)
At = s.cache_read(A, \"{scope}\", [B])
axes = s[At].transform_layout(lambda n, h, w, c: [{layout}])
{split}
"
    )
}

#[test]
fn every_convention_takes_a_ragged_layout_in_ragged_tiles() {
    let blocked = "n, c // 4, h, w, c % 4";
    let cases = [
        ("texture", blocked, ""),
        ("global.texture", "n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4", "outer, inner = s[At].split(axes[3], 4)"),
        ("texture:weight", "n, c // 4, h, w, c % 4", "outer, inner = s[At].split(axes[2], 5)"),
        ("global.texture-weight", "h, c // 4, n, w, c % 4", ""),
        ("texture:nhwc", "n, h, w, c // 4, c % 4", "s[At].vectorize(axes[4])"),
        ("global.texture-nhwc", "n, h, w, c // 4, c % 4", "outer, inner = s[At].split(axes[2], 2)"),
        ("texture", "c // 4, te.AXIS_SEPARATOR, n, h, w, c % 4", "outer, inner = s[At].split(axes[1], 4)"),
    ];
    for (scope, layout, split) in cases {
        let text = cached(scope, layout, split);
        let run = tilewright_with_input(&["check", "--device", "none", "-"], &text);
        assert_eq!(run.code, Some(0), "{scope} {layout} {split}: {run:?}");
    }
}

#[test]
fn half_precision_goes_the_same_way() {
    let text = std::fs::read_to_string("examples/conv2d_texture.py").unwrap();
    let half = text.replace("name=\"data\")", "name=\"data\", dtype=\"float16\")");
    let half = half.replace("name=\"weight\")", "name=\"weight\", dtype=\"float16\")");
    let run = tilewright_with_input(&["check", "--device", "none", "--format", "json", "-"], &half);
    assert_eq!(run.code, Some(0), "{run:?}");
    let report = run.json();
    let buffers = report["buffers"].as_array().unwrap();
    assert!(buffers.iter().all(|row| row["dtype"] == "float16"), "{buffers:?}");
    let texture = buffers.iter().find(|row| row["name"] == "packed").unwrap();
    assert_eq!(texture["flat_shape"], serde_json::json!([65, 11, 4]));
}

#[test]
fn parameters_may_be_textures() {
    let text = "from tvm import te
A = te.placeholder((2, 3, 5, 7, 4), name=\"A\", dtype=\"int8\")
B = te.compute(A.shape, lambda a, b, c, d, e: A[a, b, c, d, e] + A[a, b, c, d, 2], name=\"B\")
s = te.create_schedule(B.op)
s[A].set_scope(\"global.texture-nhwc\")
s[B].set_scope(\"texture:weight\")
s[B].bind(s[B].op.axis[0], te.thread_axis(\"blockIdx.x\"))
";
    let devices = tilewright(&["devices", "--format", "json"]).json();
    let present = devices["devices"].as_array().is_some_and(|devices| !devices.is_empty());
    let device: &[&str] = if present { &[] } else { &["--device", "none"] };
    let run = tilewright_with_input(&[&["check"], device, &["-"]].concat(), text);
    assert_eq!(run.code, Some(0), "{run:?}");
    let passes = "vectorize,lower_texture,flatten_buffer,simplify";
    let run = tilewright_with_input(&["opt", "-p", passes, "-"], text);
    for said in [
        "B: T.Buffer((2, 3, 5, 7, 4), \"int8\", scope=\"texture:weight\")",
        "T.texture2d_store(B_texels, row=a, column=b * 35 + c * 7 + d, value=",
        "T.texture2d_load(A_texels, row=a * 3 + b, column=c * 7 + d)",
        "T.texture2d_load(A_texels, row=a * 3 + b, column=c * 7 + d, lane=2)",
    ] {
        assert!(run.stdout.contains(said), "{said}: {run:?}");
    }
}

#[test]
fn hostile_sizes_are_errors() {
    let program = |shape: &str| {
        format!(
            "from tvm.script import tir as T\n\n@T.prim_func\ndef main(Y: T.Buffer((3,), \"float32\")):\n    \
            Xt = T.alloc_buffer(({shape}), \"float32\", scope=\"texture\")\n    Y[0] = Xt[0, 0, 0]\n"
        )
    };
    for shape in ["4611686018427387904, 4611686018427387904, 4", "1099511627776, 4, 4", "3, 2147483647, 4"] {
        for command in [&["check", "--device", "none", "-"][..], &["opt", "-p", "lower_texture", "-"]] {
            let run = tilewright_with_input(command, &program(shape));
            assert_eq!(run.code, Some(2), "{shape}: {run:?}");
            assert!(run.stderr.starts_with("error["), "{}", run.stderr);
        }
    }
}

/// The channels of an NCHW buffer are 63 elements apart: a ramp in flat memory, and none in the last axis.
#[test]
fn data_in_nchw_is_packed_straight_into_texels() {
    let program = "
from tvm import te

A = te.placeholder((2, 18, 7, 9), name=\"A\", dtype=\"float32\")
B = te.compute(A.shape, lambda n, c, h, w: A[n, c, h, w] * 2.0, name=\"B\")
s = te.create_schedule(B.op)
At = s.cache_read(A, \"texture\", [B])
s[At].transform_layout(lambda n, c, h, w: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
";
    let run = tilewright_with_input(&["check", "--device", "none", "-"], program);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("[70, 9, 4]"), "{}", run.stdout);
    let passes = "apply_buffer_transforms,flatten_buffer,vectorize,lower_texture,simplify";
    let script = tilewright_with_input(&["opt", "-p", passes, "-"], program).stdout;
    assert!(script.contains("T.texture2d_store(A_texture, row=n * 35 + c_outer * 7 + h, column=w"), "{script}");
    assert!(script.contains("A_flattened[T.Ramp(n * 1134 + c_outer * 252 + h * 9 + w, 63, 4)]"), "{script}");
}
