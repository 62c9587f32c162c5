//! Runs of both programs of a pair on the same arguments, with scalars of any sign.

use tilewright_compiler::harness::inputs::Numbers;
use tilewright_interp::{Argument, Arguments, Config, Observers, Order, RunError, Tensor, Trap, TrapKind, run};
use tilewright_ir::{Bindings, Expr, PrimFunc, Scalar, Var, validate};

use crate::chain::differences;
use crate::inputs::extents;

/// Limit on the iterations of a run.
const FUEL: u64 = 1 << 14;
/// Limit on the elements of an argument.
const ELEMENTS: u64 = 1 << 14;
/// Number of runs.
const RUNS: u64 = 12;
/// The values of scalar parameters and of elements that are used as integers, small ones more often.
const INTEGERS: [i128; 12] = [0, 0, 1, 1, -1, -1, 2, -2, 3, -3, 5, 7];

/// What runs of a pair showed.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    /// A run in which the program before has a meaning, and the one after has none or another one.
    pub(crate) difference: Option<String>,
    /// The traps of the program before, and of the one after, in runs with defined arguments: the first of each kind.
    pub(crate) traps: [Vec<Trap>; 2],
    /// Number of runs in which both programs leave the same values.
    pub(crate) n_equal: u64,
}

/// Runs both programs with several choices of scalars, extents and elements.
pub(crate) fn observe(before: &PrimFunc, after: &PrimFunc, seed: u64) -> Observed {
    let mut observed = Observed::default();
    let constants = constants([before, after]);
    for number in 0..RUNS {
        let mut numbers = Numbers::new(seed, number);
        let is_defined = number % 2 == 0;
        let values = Choice::draw(before, &constants, &mut numbers);
        let Some(params) = values.params(before, is_defined, &constants, &mut numbers) else { continue };
        let runs = [before, after].map(|func| values.run(func, &params));
        for (traps, ran) in observed.traps.iter_mut().zip(&runs) {
            if let Err(RunError::Trap(trap)) = ran
                && is_defined
                && traps.iter().all(|known| known.kind != trap.kind)
            {
                traps.push((**trap).clone());
            }
        }
        let [Ok(left), right] = runs else { continue };
        let found = match right {
            Ok(right) => {
                let tensors = |params: Vec<Argument>| -> Vec<Option<Tensor>> {
                    let tensor = |param| if let Argument::Tensor(tensor) = param { Some(tensor) } else { None };
                    params.into_iter().map(tensor).collect()
                };
                differences(before, &tensors(left), &tensors(right)).1
            }
            Err(RunError::Trap(trap)) if trap.kind == TrapKind::FuelExhausted => continue,
            Err(error) => Some(error.to_string()),
        };
        match found {
            Some(found) => {
                observed.difference.get_or_insert_with(|| format!("{found} with {}", values.text()));
            }
            None => observed.n_equal += 1,
        }
    }
    observed
}

/// The scalars and the symbolic extents of a run, by position and by name.
struct Choice {
    /// A value for each parameter; those of buffers are not used.
    scalars: Vec<i128>,
    /// The symbolic extents, by name: both programs get the same ones.
    symbols: Vec<(String, i128)>,
}

impl Choice {
    /// Draws scalars of any sign and extents from 1 to 4.
    fn draw(func: &PrimFunc, constants: &[i128], numbers: &mut Numbers) -> Self {
        let scalars = func.params.iter().map(|_| integer(constants, numbers)).collect();
        let mut extent = |var: Var| (var.name().to_owned(), i128::from(numbers.next() % 4) + 1);
        Self { scalars, symbols: func.extents().into_iter().map(&mut extent).collect() }
    }

    /// The symbols of a function.
    fn symbols(&self, func: &PrimFunc) -> Bindings {
        let value = |var: Var| {
            let found = self.symbols.iter().find(|(name, _)| name == var.name());
            found.map(|(_, value)| (var.clone(), *value))
        };
        func.extents().into_iter().filter_map(value).collect()
    }

    /// The arguments; `None` if there are no such tensors.
    fn params(
        &self,
        func: &PrimFunc,
        is_defined: bool,
        constants: &[i128],
        numbers: &mut Numbers,
    ) -> Option<Vec<Argument>> {
        let mut known = self.symbols(func);
        known.extend(func.params.iter().cloned().zip(self.scalars.iter().copied()));
        let written = crate::inputs::written(func);
        let one = |(param, value): (&Var, &i128)| {
            let Some(buffer) = func.param_buffer(param) else { return Some(Argument::Scalar(Scalar::Int(*value))) };
            let shape = extents(buffer, &known).ok()?;
            let size = shape.iter().try_fold(1u64, |size, extent| size.checked_mul(*extent))?;
            if size > ELEMENTS {
                return None;
            }
            let is_written = written.iter().any(|data| *data == buffer.data);
            let tensor = if is_written && !is_defined {
                Tensor::undefined(buffer.dtype, &shape).ok()?
            } else if buffer.dtype.scalar.is_float() {
                numbers.tensor(buffer.dtype, &shape).ok()?
            } else {
                Tensor::from_fn(buffer.dtype, &shape, |_| Scalar::Int(integer(constants, numbers))).ok()?
            };
            Some(Argument::Tensor(tensor))
        };
        func.params.iter().zip(&self.scalars).map(one).collect()
    }

    /// Runs a function and returns its arguments afterwards.
    fn run(&self, func: &PrimFunc, params: &[Argument]) -> Result<Vec<Argument>, RunError> {
        let observers = Observers { defined: true, race: true };
        let how = Config { threads: 1, fuel: Some(FUEL), observers, order: Order::Program, max_bytes: 1 << 24 };
        let symbols = self.symbols(func).iter().map(|(var, value)| (var.clone(), *value)).collect();
        let mut arguments = Arguments { params: params.to_vec(), symbols };
        let valid = validate(func).map_err(|found| {
            let first = found.into_iter().next();
            RunError::Input(first.unwrap_or_else(|| tilewright_ir::Diagnostic::error("run", None, "it is not valid")))
        })?;
        run(valid, &mut arguments, &how)?;
        Ok(arguments.params)
    }

    /// The values as text.
    fn text(&self) -> String {
        format!("scalars {:?} and extents {:?}", self.scalars, self.symbols)
    }
}

/// The integers that programs mention: a guard may ask for one of them.
fn constants(funcs: [&PrimFunc; 2]) -> Vec<i128> {
    let mut found = Vec::new();
    for func in funcs {
        func.body.walk(&mut |stmt| {
            stmt.exprs().for_each(|expr| {
                expr.walk(&mut |part| {
                    if let Expr::Int { value, .. } = part
                        && value.abs() < i128::from(i32::MAX)
                        && !found.contains(value)
                    {
                        found.push(*value);
                    }
                });
            });
        });
    }
    found
}

/// An integer of any sign: a small one, or, once in four times, one that the programs mention.
fn integer(constants: &[i128], numbers: &mut Numbers) -> i128 {
    let choice = usize::try_from(numbers.next() >> 32).unwrap_or(0);
    match constants {
        [_, ..] if choice % 4 == 0 => constants[choice / 4 % constants.len()],
        _ => INTEGERS[choice / 4 % INTEGERS.len()],
    }
}
