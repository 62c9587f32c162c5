//! Compiles networks to folders, builds the hosts in them, and runs these.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;
use tilewright::graph;
use tilewright::network::npy::Array;
use tilewright::network::place::Operand;
use tilewright::planner::{Strategy, plan};
use tilewright::runtime::{Network, run_graph};
use tilewright_device::{Session, devices, select};
use tilewright_ir::Module;

use crate::common::{Run, tilewright};

/// A folder that `tilewright compile` wrote, and room for other files beside it.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn path(&self) -> String {
        self.file("network")
    }

    /// A file beside the folder.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A file in the folder.
    pub(crate) fn in_folder(&self, name: &str) -> PathBuf {
        self.0.path().join("network").join(name)
    }
}

/// Runs `tilewright compile`.
pub(crate) fn compiled(arguments: &[&str]) -> Folder {
    let folder = Folder(tempfile::tempdir().unwrap());
    let run = tilewright(&[&["compile", "-o", &folder.path()], arguments].concat());
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    folder
}

/// FNV-1a with 64 bits, as `plan.txt` has it.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The text of a `plan.txt` with the hash that belongs to it, so that a host believes it.
pub(crate) fn sealed(text: &str) -> String {
    let body = &text[..text.rfind("end ").unwrap_or(text.len())];
    format!("{body}end {:016x}\n", hash(body.as_bytes()))
}

/// Replaces the source of a program, and its hash in the plan.
pub(crate) fn replace_program(folder: &Folder, name: &str, source: &str) {
    let (path, plan) = (folder.in_folder(name), folder.in_folder("plan.txt"));
    let old = format!("{:016x} {name}", hash(&std::fs::read(&path).unwrap()));
    let text = std::fs::read_to_string(&plan).unwrap();
    assert!(text.contains(&old), "{old}");
    let new = format!("{:016x} {name}", hash(source.as_bytes()));
    std::fs::write(plan, sealed(&text.replace(&old, &new))).unwrap();
    std::fs::write(path, source).unwrap();
}

/// A program that was built with `cc`.
pub(crate) struct Host(PathBuf);

impl Host {
    /// The host of a folder.
    pub(crate) fn build(folder: &Folder) -> Self {
        Self::of(folder, "host.c")
    }

    /// A program in C in the folder. Its warnings are errors.
    pub(crate) fn of(folder: &Folder, source: &str) -> Self {
        let program = PathBuf::from(folder.file(&source.replace('.', "_")));
        let library = if source == "host.c" { "-l:libOpenCL.so.1" } else { "-lm" };
        let flags = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wno-unused-function", "-O1", "-o"];
        let cc =
            Command::new("cc").args(flags).arg(&program).arg(folder.in_folder(source)).arg(library).output().unwrap();
        assert!(cc.status.success(), "{}", String::from_utf8_lossy(&cc.stderr));
        Self(program)
    }

    /// Runs a folder: options, then inputs and outputs.
    pub(crate) fn run(&self, folder: &str, arguments: &[String]) -> Run {
        let (options, files): (Vec<&str>, Vec<&str>) =
            arguments.iter().map(String::as_str).partition(|argument| argument.starts_with('-'));
        self.raw(&[&options[..], &[folder], &files[..]].concat())
    }

    pub(crate) fn raw(&self, arguments: &[&str]) -> Run {
        Command::new(&self.0).args(arguments).output().unwrap().into()
    }
}

/// Equidistant numbers around 0.
pub(crate) fn ramp(shape: &[u64]) -> Array {
    let count = u16::try_from(shape.iter().product::<u64>()).unwrap();
    let elements = (0..count).map(|at| f32::from(at) / f32::from(count) - 0.375).collect();
    Array { shape: shape.to_vec(), elements }
}

/// What the executor computes for the graph `block.json`; every tensor is compared with the interpreter's.
pub(crate) fn block(image: &Array, kernel: &Array) -> Vec<f32> {
    let text =
        |name: &str| std::fs::read_to_string(format!("{}/examples/graphs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let graph = graph::read(&text("block.json")).unwrap().graph;
    let plan = plan(&graph.graph, Strategy::Best).unwrap();
    let read = tilewright_script::read_module(&text("block.py")).unwrap();
    let judge =
        tilewright_verify::Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies()).unwrap();
    let lower = |func| {
        let program = tilewright::pipeline::Program {
            func,
            definition: None,
            written: None,
            assumed: Vec::new(),
            scheduled: Vec::new(),
        };
        tilewright::pipeline::lower(&program, &judge, false, &mut |_, _| {}).unwrap().last().clone()
    };
    let module = Module { funcs: read.funcs.into_iter().map(lower).collect() };
    let network = Network::new(&graph, &plan, &module).unwrap();
    let packed = |array: &Array| Operand::plain(&array.shape).packed(|at| array.elements[at]).unwrap();
    let devices = devices().unwrap();
    let session = Session::open(select(&devices, None).unwrap()).unwrap();
    let run = run_graph(&network, &[packed(image), packed(kernel)], &session).unwrap();
    assert!(run.agrees(), "{:?}", run.first_mismatch());
    Operand::plain(&[10]).unpacked(&run.outputs[0])
}
