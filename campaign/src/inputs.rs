//! Arguments for generated programs: inputs whose values identify their positions, and undefined
//! outputs.
//!
//! Values depend on the seed, the parameter and the position, so that an element read from a wrong position is noticed.
//! In every fourth case some floats are NaN, infinite, zero with a sign, or large.

use tilewright_interp::{Argument, Arguments, Tensor, fill};
use tilewright_ir::{Bindings, Buffer, Expr, ForKind, PrimFunc, Scalar, Stmt, StmtKind, TypeClass, Var};

use tilewright_compiler::harness::inputs::Numbers;

/// Makes the arguments of a function for the given values of its symbolic extents. Tensors that the
/// function writes are undefined, so that an element it forgets is noticed. Every fourth seed puts
/// special floats in the inputs.
///
/// # Errors
/// A shape depends on anything but the symbols, or is negative.
pub fn arguments(func: &PrimFunc, symbols: &Bindings, seed: u64) -> Result<Arguments, String> {
    let written = written(func);
    let mut params = Vec::with_capacity(func.params.len());
    for (param, part) in func.params.iter().zip(1u64..) {
        params.push(match func.param_buffer(param) {
            None => Argument::Scalar(scalar(param, seed.wrapping_add(part))),
            Some(buffer) => {
                let mut tensor =
                    Tensor::undefined(buffer.dtype, &extents(buffer, symbols)?).map_err(|error| error.to_string())?;
                if !written.contains(&buffer.data) {
                    fill(&mut tensor, seed.wrapping_mul(31).wrapping_add(part));
                    if has_special_floats(seed) {
                        insert_special_floats(&mut tensor, seed.wrapping_add(part));
                    }
                }
                Argument::Tensor(tensor)
            }
        });
    }
    Ok(Arguments { params, symbols: listed(symbols) })
}

/// Whether the inputs of a case contain NaN, infinities and negative zeros.
pub fn has_special_floats(seed: u64) -> bool {
    seed % 4 == 2
}

/// Replaces some floats by NaN, infinities, zeros and values above 2; does nothing for integers.
fn insert_special_floats(tensor: &mut Tensor, seed: u64) {
    let (mut numbers, ty) = (Numbers::new(seed, 0), tensor.dtype().scalar);
    if !ty.is_float() {
        return;
    }
    for lane in 0..tensor.lane_count() {
        // Ordinary values stay those of `fill`, which identify their positions.
        if let value @ Scalar::Float(odd) = numbers.value_or_special(ty)
            && (!odd.is_normal() || odd.abs() > 2.0)
        {
            tensor.set(lane, value);
        }
    }
}

/// The values of the symbols in the form that a run expects.
pub fn listed(symbols: &Bindings) -> Vec<(Var, i128)> {
    symbols.iter().map(|(var, value)| (var.clone(), *value)).collect()
}

/// The extents of a buffer for the given values of the symbols.
///
/// # Errors
/// An extent depends on anything but the symbols, or is negative.
pub fn extents(buffer: &Buffer, symbols: &Bindings) -> Result<Vec<u64>, String> {
    let one = |extent: &Expr| {
        let value = extent.as_const_int().or_else(|| extent.eval_index(symbols).ok());
        value.and_then(|value| u64::try_from(value).ok()).ok_or_else(|| format!("an extent of {buffer} is no constant"))
    };
    buffer.shape.iter().map(one).collect()
}

/// The data variables of the buffers that a function stores to, each once.
pub fn written(func: &PrimFunc) -> Vec<Var> {
    let mut written = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !written.contains(&buffer.data)
        {
            written.push(buffer.data.clone());
        }
    });
    written
}

/// A value for a scalar parameter: 0 to 12 for unsigned integers, -6 to 6 for signed ones, -3 to 3
/// for floats.
fn scalar(param: &Var, seed: u64) -> Scalar {
    let small = i8::try_from(seed % 13).unwrap_or(0);
    match param.dtype().scalar.class() {
        TypeClass::Bool => Scalar::Int(i128::from(small & 1)),
        TypeClass::Float => Scalar::Float(f64::from(small) / 2.0 - 3.0),
        TypeClass::UInt | TypeClass::Handle => Scalar::Int(small.into()),
        TypeClass::Int => Scalar::Int(i128::from(small) - 6),
    }
}

/// Whether loaded values decide which statements run or which elements are accessed. Two programs
/// with this property may differ in more than values if a pass reorders a float operation.
pub fn control_reads_memory(func: &PrimFunc) -> bool {
    let mut is_found = false;
    func.body.walk(&mut |stmt| {
        is_found |= match &stmt.kind {
            StmtKind::If { cond, .. } | StmtKind::Assert { cond, .. } => cond.reads_memory(),
            StmtKind::For(inner) => inner.min.reads_memory() || inner.extent.reads_memory(),
            // The variable may occur in any condition or index of the body.
            StmtKind::Let { value, .. } => value.reads_memory(),
            StmtKind::Store { indices, .. } => indices.iter().any(Expr::reads_memory),
            StmtKind::Allocate { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. } => false,
        };
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                is_found |= match part {
                    Expr::Load { indices, .. } => indices.iter().any(Expr::reads_memory),
                    // It evaluates only the chosen value, so its condition decides which loads are executed. `Select`
                    // evaluates both.
                    Expr::IfThenElse(cond, ..) => cond.reads_memory(),
                    Expr::Int { .. }
                    | Expr::Float { .. }
                    | Expr::Var(_)
                    | Expr::Binary(..)
                    | Expr::Unary(..)
                    | Expr::Call(..)
                    | Expr::Select(..)
                    | Expr::Cast(..)
                    | Expr::Ramp { .. }
                    | Expr::Broadcast { .. } => false,
                };
            });
        }
    });
    is_found
}

/// Whether a launch has thread-bound loops behind or around other code of it: below a serial loop, or beside other statements.
///
/// For the judge and the generated kernels, which have a barrier there, the threads of a loop wait for that code. The race check of
/// the interpreter takes the whole launch for one iteration space, and may report a race.
pub fn thread_loops_wait(stmt: &Stmt) -> bool {
    is_thread_loop(stmt) && stmt.children().any(|part| has_waiting(part, false))
        || stmt.children().any(thread_loops_wait)
}

fn is_thread_loop(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::For(run) if matches!(run.kind, ForKind::ThreadBinding(_)))
}

/// Whether there is a thread-bound loop below a loop that is not, or beside other statements; `is_below` if such code is around.
fn has_waiting(stmt: &Stmt, is_below: bool) -> bool {
    if is_thread_loop(stmt) && is_below {
        return true;
    }
    let is_other_code = matches!(stmt.kind, StmtKind::For(_) | StmtKind::Seq(_)) && !is_thread_loop(stmt);
    stmt.children().any(|part| has_waiting(part, is_below || is_other_code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_loops_wait_below_serial_loops_and_beside_statements_only() {
        let outer = "    for x in T.thread_binding(3, thread=\"blockIdx.x\"):\n";
        let inner = |depth: usize| {
            let pad = "    ".repeat(depth);
            format!("{pad}for y in T.thread_binding(5, thread=\"threadIdx.x\"):\n{pad}    B[x, y] = 1\n")
        };
        let bodies = [
            (inner(2), false),
            (format!("        for k in range(2):\n{}", inner(3)), true),
            (format!("        B[x, 0] = 2\n{}", inner(2)), true),
            ("        for k in range(2):\n            B[x, k] = 1\n".to_owned(), false),
        ];
        for (body, waits) in bodies {
            let text = format!("@T.prim_func\ndef main(B: T.Buffer((3, 5), \"int32\")):\n{outer}{body}");
            let func = tilewright_script::read_module(&text).unwrap().funcs.remove(0);
            assert_eq!(thread_loops_wait(&func.body), waits, "{text}");
        }
    }
}
