//! `tilewright compile` of a model and of a graph: the host that it writes is built with `cc`, runs on PoCL, and computes bit for bit
//! what `tilewright plan --run` computed. A damaged folder and wrong arguments end with a message and an exit code.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "deploy/host.rs"]
mod host;

use std::fs;

use common::tilewright;
use host::{Folder, Host, compiled, ramp, replace_program, sealed};
use tilewright::network::npy::{self, Array};
use tilewright::network::npz;
use tilewright::network::place::{Arrangement, Operand};

const TINY: &str = "examples/models/tiny.onnx";
/// The input of the model `TINY`.
const SHAPE: [u64; 4] = [1, 3, 13, 11];

/// The folder of `TINY`.
fn tiny(flags: &[&str]) -> Folder {
    compiled(&[&[TINY], flags].concat())
}

/// Writes the input of `TINY`, runs the host with it, and returns the output.
fn output(host: &Host, folder: &Folder) -> Array {
    let (input, output) = (folder.file("in.npy"), folder.file("out.npy"));
    fs::write(&input, npy::write(&ramp(&SHAPE)).unwrap()).unwrap();
    let run = host.run(&folder.path(), &[format!("image={input}"), format!("probabilities={output}")]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    npy::read(&fs::read(output).unwrap()).unwrap()
}

#[test]
fn the_host_computes_what_the_executor_computed() {
    let folder = tiny(&[]);
    let host = Host::build(&folder);
    let found = output(&host, &folder);
    assert_eq!(found.shape, [1, 5]);
    let (input, executed) = (folder.file("in.npy"), folder.file("executed.npy"));
    // `plan --run` compares every tensor with the reference, and fails if one differs.
    let (given, saved) = (format!("image={input}"), format!("probabilities={executed}"));
    let run = tilewright(&["plan", TINY, "--run", "--input", &given, "--save", &saved]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let executed = npy::read(&fs::read(executed).unwrap()).unwrap();
    let bits = |array: &Array| array.elements.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&found), bits(&executed));
    // Bare elements are read and written as well.
    let (raw, out) = (folder.file("in.raw"), folder.file("out.raw"));
    fs::write(&raw, ramp(&SHAPE).elements.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()).unwrap();
    let run = host.run(&folder.path(), &["-t".to_owned(), format!("image={raw}"), format!("probabilities={out}")]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.stdout.contains("softmax_7_0: ") && run.stdout.contains(" ms"), "{run:?}");
    let bytes: Vec<u8> = found.elements.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(fs::read(out).unwrap(), bytes);
}

#[test]
fn checked_kernels_compute_the_same_and_report() {
    let folder = tiny(&["--checked"]);
    let host = Host::build(&folder);
    let plain = tiny(&[]);
    assert_eq!(output(&host, &folder), output(&host, &plain));
    // A convolution that reads its texture from another row: the checks of texels find it, where there are checks.
    let text = fs::read_to_string(folder.in_folder("plan.txt")).unwrap();
    assert!(text.contains("\nreport\n"));
    let source = fs::read_to_string(folder.in_folder("relu_2.cl")).unwrap();
    assert!(source.contains("get_group_id(0)"), "{source}");
    replace_program(&folder, "relu_2.cl", &source.replace("get_group_id(0)", "(get_group_id(0) + 1000)"));
    let run = host.run(&folder.path(), &[format!("image={}", folder.file("in.npy"))]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("outside of its texture"), "{run:?}");
}

#[test]
fn a_damaged_folder_is_refused() {
    let folder = tiny(&[]);
    let host = Host::build(&folder);
    let expected = output(&host, &folder);
    let input = format!("image={}", folder.file("in.npy"));
    let plan = fs::read_to_string(folder.in_folder("plan.txt")).unwrap();
    let first_image = plan.lines().find(|line| line.starts_with("image ")).unwrap();
    let first_launch = plan.lines().find(|line| line.starts_with("launch ")).unwrap();
    let first_constant = plan.lines().find(|line| line.starts_with("constant ")).unwrap();
    let cut = &plan[..plan.find("\nlaunch ").unwrap() + 30];
    // Changes of a plan whose hash is made to fit: what the host checks besides.
    let changed = |from: &str, to: &str| {
        assert!(plan.contains(from), "{from}");
        sealed(&plan.replacen(from, to, 1))
    };
    let launch_of = |program: &str| first_launch.replacen("launch 0 ", &format!("launch {program} "), 1);
    let pool_of_conv = plan.lines().find(|line| line.starts_with("memory 5")).unwrap();
    for (what, text, code, message) in [
        (
            "another first line",
            plan.replace("tilewright-network 2", "tilewright-network 1"),
            2,
            "no plan that this host can run",
        ),
        ("cut off", cut.to_owned(), 2, "cut off"),
        ("without an end", plan[..plan.rfind("end ").unwrap()].to_owned(), 2, "cut off"),
        ("nothing", String::new(), 2, "no plan that this host can run"),
        ("one line", "tilewright-network 2\n".to_owned(), 2, "cut off"),
        ("a changed number", plan.replacen("\nmemory 0\n", "\nmemory 1\n", 1), 2, "is damaged"),
        ("another hash", plan.replacen("\nend ", "\nend 1", 1), 2, "is damaged"),
        ("a texture above the limits", changed(first_image, "image 1000000 3 4277 4318"), 3, "and the device allows"),
        ("a texture of other channels", changed(first_image, "image 27 3 4278 4318"), 2, "of an unknown format"),
        ("a texture of no channels", changed(first_image, "image 27 3 4277 7"), 2, "of an unknown format"),
        ("a texture without texels", changed(first_image, "image 0 3 4277 4318"), 2, "has no texels"),
        ("a word that nobody knows", changed("\nweights ", "\nweight "), 2, "means nothing to this host"),
        ("an argument of no launch", changed("\nweights ", "\nmemory 0\nweights "), 2, "means nothing to this host"),
        ("memory that there is not", changed("\nmemory 5\n", "\nmemory 500\n"), 2, "is no memory of the plan"),
        ("a buffer for a texture", changed(pool_of_conv, "memory 0"), 2, "is no argument"),
        ("a number for a texture", changed(pool_of_conv, "value 00000000"), 2, "is no argument"),
        ("half a byte", changed(pool_of_conv, "value 000"), 2, "is no value"),
        ("a value without end", changed(pool_of_conv, &format!("value {}", "00".repeat(40))), 2, "is no value"),
        ("a word for a number", changed(pool_of_conv, "memory five"), 2, "plan.txt:"),
        ("a negative number", changed(pool_of_conv, "memory -1"), 2, "is no number"),
        (
            "another kernel",
            changed(first_launch, &first_launch.replace("convert_0_0", "convert_0_9")),
            3,
            "convert_0_9",
        ),
        ("a program that there is not", changed(first_launch, &launch_of("99")), 2, "is of a program that the plan"),
        (
            "work-items without end",
            changed(first_launch, "launch 0 9999999999 1 1 1 1 1 convert_0_0"),
            2,
            "has too many work-items",
        ),
        ("too few arguments", changed(&format!("\n{pool_of_conv}\n"), "\n"), 2, "arguments, not"),
        ("too few objects", changed(&format!("{first_image}\n"), ""), 2, "plan.txt:"),
        (
            "a place outside",
            changed(first_constant, &first_constant.replacen("constant 1 0 0", "constant 1 9 9", 1)),
            2,
            "memory 1 has no such place",
        ),
        (
            "huge numbers",
            changed(first_constant, "constant 1 18446744073709551615 1 18446744073709551615 9 0 x"),
            2,
            "memory 1 has no such place",
        ),
        ("a constant behind the weights", changed(first_constant, "constant 1 0 0 27 3 999999 x"), 2, "weights.bin"),
        ("a program elsewhere", changed(" conv_1.cl", " ../conv_1.cl"), 2, "not in its folder"),
        ("a type that is none", changed(" <f4 ", " 'sha "), 2, "is no type of elements"),
        ("another size of elements", changed(" <f4 ", " <f8 "), 2, "has more elements than its memory"),
        ("an arrangement that is none", changed(" row_major ", " column_major "), 2, "is no arrangement"),
        ("too many extents", changed(" 4 1 3 13 11 ", " 4000 1 3 13 11 "), 2, "is no arrangement of so many axes"),
        ("extents without end", changed(" 4 1 3 13 11 ", " 4 1 3 13 18446744073709551615 "), 2, "more elements"),
        ("memory without end", changed(" 1716 1 <f4", " 1716 18446744073709551615 <f4"), 2, "has no such place"),
    ] {
        assert_ne!(text, plan, "{what}");
        fs::write(folder.in_folder("plan.txt"), text).unwrap();
        let run = host.run(&folder.path(), std::slice::from_ref(&input));
        assert_eq!(run.code, Some(code), "{what}: {run:?}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains(message), "{what}: {run:?}");
    }
    fs::write(folder.in_folder("plan.txt"), &plan).unwrap();
    let weights = fs::read(folder.in_folder("weights.bin")).unwrap();
    let mut changed = weights.clone();
    changed[100] ^= 1;
    for bytes in [&weights[..weights.len() - 1], &changed[..], &[]] {
        fs::write(folder.in_folder("weights.bin"), bytes).unwrap();
        let run = host.run(&folder.path(), std::slice::from_ref(&input));
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains("weights.bin is not the file that belongs to plan.txt"), "{run:?}");
    }
    fs::write(folder.in_folder("weights.bin"), &weights).unwrap();
    let source = fs::read_to_string(folder.in_folder("conv_1.cl")).unwrap();
    fs::rename(folder.in_folder("conv_1.cl"), folder.file("kept.cl")).unwrap();
    let run = host.run(&folder.path(), std::slice::from_ref(&input));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("cannot read") && run.stderr.contains("conv_1.cl"), "{run:?}");
    let broken = "kernel void conv_1_0() { this is no C }";
    fs::write(folder.in_folder("conv_1.cl"), broken).unwrap();
    let run = host.run(&folder.path(), std::slice::from_ref(&input));
    assert_eq!(run.code, Some(2), "{run:?}");
    assert!(run.stderr.contains("conv_1.cl is not the file that belongs to plan.txt"), "{run:?}");
    fs::rename(folder.file("kept.cl"), folder.in_folder("conv_1.cl")).unwrap();
    replace_program(&folder, "conv_1.cl", broken);
    assert_eq!(host.run(&folder.path(), &[input]).code, Some(3));
    replace_program(&folder, "conv_1.cl", &source);
    assert_eq!(output(&host, &folder), expected);
}

#[test]
fn a_plan_with_any_byte_changed_ends_with_a_message() {
    let folder = tiny(&[]);
    let host = Host::build(&folder);
    let plan = fs::read(folder.in_folder("plan.txt")).unwrap();
    for at in (0..plan.len()).step_by(plan.len() / 60) {
        for byte in [plan[at] ^ 1, 0, b'9', b'\n'] {
            let mut damaged = plan.clone();
            damaged[at] = byte;
            if damaged == plan {
                continue;
            }
            fs::write(folder.in_folder("plan.txt"), damaged).unwrap();
            let run = host.run(&folder.path(), &["image=none.npy".to_owned()]);
            assert_eq!(run.code, Some(2), "byte {at} is {byte}: {run:?}");
            assert!(
                run.stderr.starts_with("error: ") && run.stderr.contains("plan.txt"),
                "byte {at} is {byte}: {run:?}"
            );
        }
    }
}

#[test]
fn every_texture_has_the_pitch_of_the_target() {
    for target in ["opencl --device=adreno --pitch=4", "opencl --device=mali --pitch=64"] {
        let plan = tilewright(&["plan", TINY, "--target", target, "--device", "none"]);
        assert_eq!(plan.code, Some(0), "{target}: {plan:?}");
        let folder = tiny(&["--target", target]);
        let host = Host::build(&folder);
        fs::write(folder.file("in.npy"), npy::write(&ramp(&SHAPE)).unwrap()).unwrap();
        let run = host.run(&folder.path(), &[format!("image={}", folder.file("in.npy"))]);
        assert_eq!(run.code, Some(0), "{target}: {run:?}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    let folder = tiny(&[]);
    let host = Host::build(&folder);
    let write = |name: &str, bytes: &[u8]| {
        fs::write(folder.file(name), bytes).unwrap();
        format!("image={}", folder.file(name))
    };
    let good = npy::write(&ramp(&SHAPE)).unwrap();
    let mut doubles = good.clone();
    let descr = doubles.windows(3).position(|word| word == b"<f4").unwrap();
    doubles[descr + 2] = b'8';
    for (arguments, message) in [
        (vec![], "input `image` is not given"),
        (
            vec![write("other.npy", &npy::write(&ramp(&[1, 3, 11, 13])).unwrap())],
            "the tensor is {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 13, 11)",
        ),
        (vec![write("short.npy", &good[..good.len() - 4])], "bytes of elements"),
        (vec![write("head.npy", b"\x93NUMPY\x02\x00\xf0\xff")], "is cut off"),
        (vec![write("doubles.npy", &doubles)], "holds {'descr': '<f8'"),
        (vec![write("short.raw", &[0; 100])], "has 100 bytes, and the tensor 1716"),
        (vec![write("good.npy", &good), "nobody=x".to_owned()], "names no input or output"),
        (vec!["image=no/such/file.npy".to_owned()], "cannot read no/such/file.npy"),
        (vec![write("good.npy", &good), "probabilities=no/such/file.npy".to_owned()], "cannot write"),
    ] {
        let run = host.run(&folder.path(), &arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
    }
    assert_eq!(host.run("no/such/folder", &[]).code, Some(2));
    assert_eq!(host.raw(&[]).code, Some(2));
    assert_eq!(host.raw(&["--help"]).code, Some(2));
    let run = host.raw(&["-d", "77", &folder.path(), "image=x"]);
    assert_eq!((run.code, run.stderr.contains("no OpenCL device 77")), (Some(3), true), "{run:?}");
}

#[test]
fn nothing_is_written_unless_everything_is_proved() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    // Kernels of which one leaves its texture, kernels of another graph or none, a plan that is not there, options of others.
    let kernels = fs::read_to_string(format!("{}/examples/graphs/block.py", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let wrong = folder.path().join("wrong.py");
    let (right, other) = ("image[0, h, w, co * 4 + c]", "image[0, h + 1, w, co * 4 + c]");
    assert!(kernels.contains(right));
    fs::write(&wrong, kernels.replacen(right, other, 1)).unwrap();
    // A name that no line of plan.txt can hold.
    let graph = fs::read_to_string(format!("{}/examples/graphs/block.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let renamed = folder.path().join("renamed.json");
    fs::write(&renamed, graph.replace("\"image\"", "\"im\\nage\"")).unwrap();
    for (arguments, code) in [
        (vec!["examples/graphs/block.json", "--kernels", wrong.to_str().unwrap()], 1),
        (vec![renamed.to_str().unwrap(), "--kernels", "examples/graphs/block.py"], 2),
        (vec![TINY, "--kernels", "examples/graphs/block.py"], 2),
        (vec!["examples/graphs/block.json"], 2),
        (vec!["examples/graphs/block.json", "--kernels", "examples/addone.py"], 2),
        (vec!["examples/graphs/block.json", "--kernels", "examples/graphs/block.py", "--planner", "given"], 2),
        (vec!["examples/graphs/block.json", "--kernels", "examples/graphs/block.py", "--target", "opencl"], 2),
        (vec!["examples/addone.py", "--target", "opencl"], 2),
    ] {
        let run = tilewright(&[&["compile", "-o", out], &arguments[..]].concat());
        assert_eq!(run.code, Some(code), "{arguments:?}: {run:?}");
        assert!(!std::path::Path::new(out).exists(), "{arguments:?}");
    }
}

#[test]
fn the_packing_functions_in_c_are_those_of_the_planner() {
    let folder = tiny(&[]);
    let main = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include "pack.h"
        int main(int argc, char **argv) {
            int rank = argc - 2, needed;
            size_t shape[8], count = 1;
            for (int i = 0; i < rank; i++) count *= shape[i] = (size_t)atoi(argv[i + 2]);
            tw_place *place = tw_arrangement(argv[1], &needed);
            for (size_t i = 0; i < count; i++) printf("%zu\n", place(shape, i));
            char memory[4], logical[4] = {1, 2, 3, 4};
            return tw_pack(tw_place_row_major, shape, 4, 1, logical, memory, 4) != 1 || tw_pack(tw_place_row_major, shape, 5, 1, logical, memory, 4) != 0
                || tw_unpack(tw_place_row_major, shape, 4, 1, logical, memory, 4) != 1;
        }"#;
    fs::write(folder.in_folder("pack_test.c"), main).unwrap();
    let program = Host::of(&folder, "pack_test.c");
    for (name, arrangement, shape) in [
        ("nchw4c", Arrangement::Channels4, &[2, 6, 3, 5][..]),
        ("nchw4c", Arrangement::Channels4, &[1, 8, 5, 3]),
        ("oihw4o", Arrangement::Filter4, &[7, 5, 3, 2]),
        ("c4", Arrangement::Vector4, &[11]),
        ("row_major", Arrangement::Plain, &[3, 5]),
        ("row_major", Arrangement::Plain, &[]),
    ] {
        let operand = Operand { arrangement, ..Operand::plain(shape) };
        let expected: Vec<String> = operand.positions().map(|place| place.to_string()).collect();
        let mut arguments = vec![name.to_owned()];
        arguments.extend(shape.iter().map(u64::to_string));
        let run = program.raw(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.stdout.lines().collect::<Vec<_>>(), expected, "{name} {shape:?}");
    }
}

#[test]
fn a_graph_with_its_kernels_runs() {
    let folder = compiled(&["examples/graphs/block.json", "--kernels", "examples/graphs/block.py"]);
    let host = Host::build(&folder);
    let mut arguments = Vec::new();
    let (image, kernel) = (ramp(&[1, 7, 9, 10]), ramp(&[3, 3, 10]));
    for (name, array) in [("image", &image), ("kernel", &kernel)] {
        fs::write(folder.file(name), npy::write(array).unwrap()).unwrap();
        arguments.push(format!("{name}={}", folder.file(name)));
    }
    arguments.push(format!("scores={}", folder.file("scores.npy")));
    let run = host.run(&folder.path(), &arguments);
    assert_eq!(run.code, Some(0), "{run:?}");
    let found = npy::read(&fs::read(folder.file("scores.npy")).unwrap()).unwrap();
    let expected = host::block(&image, &kernel);
    assert_eq!(found.shape, [10]);
    assert_eq!(found.elements, expected);
}

#[test]
fn the_graph_of_a_folder_runs_with_its_kernels_and_weights() {
    let folder = tiny(&["--executor"]);
    let [graph, kernels, weights] =
        ["graph.json", "kernels.py", "weights.npz"].map(|name| folder.in_folder(name).to_str().unwrap().to_owned());
    let image = folder.file("image.npz");
    fs::write(&image, npz::write([("image", &ramp(&SHAPE))]).unwrap()).unwrap();
    // The model itself, from an archive into an archive.
    let of_model = folder.file("model.npz");
    let run = tilewright(&["plan", TINY, "--run", "--input", &image, "--save", &of_model]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let expected = npz::read(&fs::read(&of_model).unwrap()).unwrap();
    assert_eq!(
        expected.iter().map(|(name, array)| (name.as_str(), array.shape.clone())).collect::<Vec<_>>(),
        [("probabilities", vec![1, 5])]
    );
    // Its graph with the plan that stands there: every kernel is read, proved and compared with the interpreter again.
    let of_graph = folder.file("graph.npz");
    let run = tilewright(&[
        "plan",
        &graph,
        "--planner",
        "given",
        "--run",
        &kernels,
        "--input",
        &weights,
        "--input",
        &image,
        "--save",
        &of_graph,
        "--expect",
        &of_model,
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(npz::read(&fs::read(&of_graph).unwrap()).unwrap(), expected);
    // What is written again is the same file.
    let again = folder.file("again.json");
    assert_eq!(tilewright(&["plan", &graph, "--planner", "given", "-o", &again]).code, Some(0));
    assert_eq!(fs::read_to_string(&again).unwrap(), fs::read_to_string(&graph).unwrap());
    // Without the weights, the output is another one; and names, shapes and options that do not fit are errors.
    let wrong = folder.file("wrong.npz");
    for (arguments, code, message) in [
        (vec!["--run", &kernels, "--input", &image, "--expect", &of_model], 1, "differs from"),
        (vec!["--run", &kernels, "--input", &of_model], 2, "--input names `probabilities`, which it cannot"),
        (vec!["--run", &kernels, "--input", &image, "--input", &image], 2, "is given twice"),
        (vec!["--run", &kernels, "--save", &wrong, "--save", &wrong], 2, "two options --save"),
        (vec!["--input", &image], 2, "add --run"),
        (vec!["--run", &kernels, "--save", &wrong, "--device", "none"], 2, "needs the results of a device"),
    ] {
        let run = tilewright(&[&["plan", &graph][..], &arguments].concat());
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(run.code == Some(code) && said.contains(message), "{arguments:?}: {run:?}");
    }
    assert!(!std::path::Path::new(&wrong).exists());
}
