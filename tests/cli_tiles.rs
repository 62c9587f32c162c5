//! Named formats wherever a map is expected, and tiled layouts as a pass, from the command line.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{tilewright, tilewright_with_input};
use serde_json::{Value, json};

fn map(map: &str, shape: &str, more: &[&str]) -> (Option<i32>, Value) {
    let run = tilewright(&[&["map", map, "--shape", shape, "--format", "json"], more].concat());
    (run.code, run.json())
}

fn proved(json: &Value, obligation: &str) -> bool {
    let rows = json["verdicts"].as_array().unwrap();
    rows.iter().any(|row| row["obligation"] == obligation && row["verdict"] == "proved")
}

#[test]
fn a_format_is_taken_where_a_lambda_is() {
    let (code, json) = map("NCHW4c", "2,17,7,9", &["--at", "1,16,3,5"]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["map"], "lambda n, c, h, w: [n, c // 4, h, w, c % 4]");
    assert_eq!(json["physical_shape"], json!([2, 5, 7, 9, 4]));
    assert_eq!(json["at"][0]["physical"], json!([1, 4, 3, 5, 0]));
    assert!(proved(&json, "specification") && proved(&json, "injective") && proved(&json, "bounds"), "{json}");
    let (code, json) = map("NHWC->NCHW4c", "2,7,9,17", &[]);
    assert_eq!((code, json["map"].as_str()), (Some(0), Some("lambda n, h, w, c: [n, c // 4, h, w, c % 4]")));
    let (code, json) = map("(8,128)(2,1)", "19,300", &["--at", "18,299"]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["physical_shape"], json!([3, 3, 4, 128, 2, 1]));
    assert_eq!(json["at"][0]["flat"], json!([((2 * 3 + 2) * 4 + 1) * 128 * 2 + 43 * 2]));
}

#[test]
fn a_block_is_whole_even_where_the_axis_is_shorter() {
    let (code, json) = map("NCHW16c", "2,3,7,9", &["--at", "1,2,3,5"]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["physical_shape"], json!([2, 1, 7, 9, 16]));
    assert_eq!(json["at"][0]["flat"], json!([((7 + 3) * 9 + 5) * 16 + 2]));
}

#[test]
fn a_wrong_format_is_shown_at_its_place() {
    for (name, said) in [
        ("NCHW4d", "the axis d has a block, but there is no D"),
        ("NCHW4", "the block size 4 has no axis"),
        ("(8,0)", "0 is not a tile size"),
    ] {
        let run = tilewright(&["map", name, "--shape", "2,17,7,9"]);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(said) && run.stderr.contains('^'), "{}", run.stderr);
    }
    let run = tilewright(&["map", "NCHW4c", "--shape", "2,17,7"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("has 4 axes, but the shape has 3"), "{}", run.stderr);
}

const PROGRAM: &str = "from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((3, 5), \"float32\"), B: T.Buffer((3, 5), \"float32\")):
    for i, j in T.grid(3, 5):
        B[i, j] = A[i, j] + T.float32(1)
";

#[test]
fn opt_tiles_a_buffer_that_is_named_with_its_layout() {
    let run = tilewright_with_input(&["opt", "-p", "tile_layout=A:{1,0:T(2,2)},simplify", "-"], PROGRAM);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("A: T.Buffer((2, 3, 2, 2), \"float32\")"), "{}", run.stdout);
    assert!(run.stdout.contains("A[i // 2, j // 2, i % 2, j % 2]"), "{}", run.stdout);
    for (passes, said) in [
        ("tile_layout=A:{1,0:T(2,0)}", "0 is not a tile size"),
        ("tile_layout=C:{1,0}", "has no buffer `C`"),
        ("simplify=A:{1,0}", "`simplify` takes no `=`"),
    ] {
        let run = tilewright_with_input(&["opt", "-p", passes, "-"], PROGRAM);
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
}

#[test]
fn the_examples_are_proved_and_run_with_their_padding() {
    for (file, obligations) in [("tile_layout", &["specification", "tiling"][..]), ("tile_layout_padded", &["padding"])]
    {
        let run = tilewright(&["check", "--format", "json", &format!("examples/{file}.py")]);
        let json = run.json();
        assert_eq!(json["verdict"], "proved", "{json}");
        let passes = json["passes"].as_array().unwrap();
        let pass = passes.iter().find(|pass| pass["name"] == "tile_layout").unwrap();
        let rows = pass["obligations"].as_array().unwrap();
        for obligation in obligations {
            assert!(rows.iter().any(|row| row["obligation"] == *obligation), "{pass}");
        }
        for engine in json["engines"].as_array().unwrap() {
            assert!(["agrees", "reference", "skipped"].contains(&engine["status"].as_str().unwrap()), "{engine}");
        }
    }
}

#[test]
fn programs_that_ask_for_no_tiles_do_not_show_the_pass() {
    let run = tilewright_with_input(&["check", "--device", "none", "--format", "json", "-"], PROGRAM);
    let json = run.json();
    assert_eq!(run.code, Some(0), "{json}");
    assert!(json["passes"].as_array().unwrap().iter().all(|pass| pass["name"] != "tile_layout"));
}

#[test]
fn validate_takes_a_format_for_the_map_of_a_buffer() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    let (before, after) = (path("before.py"), path("after.py"));
    let program = |shape: &str, index: &str| {
        format!(
            "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer({shape}, \"float32\")):\n    \
             for n, c, h, w in T.grid(2, 17, 7, 9):\n        A[{index}] = T.float32(1)\n"
        )
    };
    std::fs::write(&before, program("(2, 17, 7, 9)", "n, c, h, w")).unwrap();
    std::fs::write(&after, program("(2, 5, 7, 9, 4)", "n, c // 4, h, w, c % 4")).unwrap();
    let right = tilewright(&["validate", &before, &after, "--map", "A: NCHW4c"]);
    assert_eq!(right.code, Some(0), "{right:?}");
    let wrong = tilewright(&["validate", &before, &after, "--map", "A: NHWC4c"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
}
