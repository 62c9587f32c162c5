//! Programs run on made-up inputs.

use tilewright_interp::{Arguments, Config, Observers, Order, RunError, Tensor, fill, run};
use tilewright_ir::{PrimFunc, validate};

/// What a run came to.
#[derive(Debug, PartialEq)]
pub(crate) enum Run {
    /// The parameters afterwards.
    Done(Vec<Tensor>),
    /// What the program did that has no meaning.
    Trap(String),
}

/// Runs a program; reading what nobody wrote and races are traps.
pub(crate) fn runs(func: &PrimFunc, seed: u64) -> Run {
    let make = |(position, (_, buffer)): (usize, &(tilewright_ir::Var, tilewright_ir::Buffer))| {
        let shape: Vec<u64> =
            buffer.shape.iter().map(|extent| u64::try_from(extent.as_const_int().unwrap()).unwrap()).collect();
        let mut tensor = Tensor::undefined(buffer.dtype, &shape).unwrap();
        fill(&mut tensor, seed * 31 + position as u64);
        tensor
    };
    let mut args = Arguments::tensors(func.buffer_map.iter().enumerate().map(make));
    let config = Config {
        threads: 1,
        observers: Observers { defined: true, race: true },
        order: Order::Program,
        ..Config::default()
    };
    match run(validate(func).unwrap(), &mut args, &config) {
        Ok(_) => Run::Done((0..func.params.len()).map(|param| args.tensor(param).unwrap().clone()).collect()),
        Err(RunError::Trap(trap)) => Run::Trap(trap.message),
        Err(error) => panic!("{error}"),
    }
}
