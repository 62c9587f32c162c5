//! Runs generated kernels on the first OpenCL device there is.

use std::collections::BTreeMap;

use tilewright_device::{BuildOptions, RunOptions, Session, devices, select};
use tilewright_interp::Tensor;
use tilewright_ir::{Buffer, PrimFunc, Stmt, Var};
use tilewright_verify::Judge;

use crate::codegen::{Arguments, Generated, Kernels};

/// A function over global buffers, without scalar parameters.
pub(super) fn function(name: &str, buffers: &[&Buffer], body: Stmt) -> PrimFunc {
    let buffer_map: Vec<_> = buffers
        .iter()
        .map(|&buffer| (Var::new(format!("{buffer}_handle"), tilewright_ir::DataType::HANDLE), buffer.clone()))
        .collect();
    let params = buffer_map.iter().map(|(var, _)| var.clone()).collect();
    PrimFunc { name: name.into(), params, buffer_map, attrs: tilewright_ir::FuncAttrs::default(), body }
}

/// The kernels of a function that is well formed.
pub(super) fn kernels(func: &PrimFunc) -> Generated {
    let judge = Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies()).expect("a solver");
    Kernels::proved(&judge, func).expect("kernels").plain().clone()
}

/// A device; the tests of this crate need one, as `make test` installs PoCL.
pub(super) fn session() -> Session {
    let devices = devices().expect("OpenCL answers");
    Session::open(select(&devices, None).expect("an OpenCL device")).expect("the device opens")
}

/// Arguments out of tensors.
pub(super) fn contents<'a>(tensors: impl IntoIterator<Item = (&'a Buffer, Tensor)>) -> Arguments {
    let contents = tensors.into_iter().map(|(buffer, tensor)| (buffer.data.clone(), tensor.shared_bytes())).collect();
    Arguments { contents, ..Arguments::default() }
}

/// Builds, runs, and gives the contents of all buffers that are written.
pub(super) fn run_all(session: &Session, generated: &Generated, arguments: &Arguments) -> BTreeMap<Var, Vec<u8>> {
    let options = BuildOptions { flags: generated.metadata.build_options.clone(), ..BuildOptions::default() };
    let program = session.build(&generated.source, &options).unwrap_or_else(|error| panic!("{error}"));
    let plan = generated.plan(arguments).expect("a plan");
    let result = session
        .run(&program, &plan, &RunOptions::default())
        .unwrap_or_else(|error| panic!("{error}\n{}", generated.source));
    let data = generated.metadata.buffers.iter().map(|info| info.data.clone());
    data.zip(result.buffers).filter_map(|(data, bytes)| Some((data, bytes?))).collect()
}

/// Builds, runs, and gives the contents of a buffer afterwards.
pub(super) fn run(session: &Session, generated: &Generated, arguments: &Arguments, output: &Buffer) -> Vec<u8> {
    run_all(session, generated, arguments).remove(&output.data).expect("it is read back")
}

/// The bytes of float32 values.
pub(super) fn f32_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}
