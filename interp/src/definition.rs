//! Tensor definitions as programs: each stage becomes a loop nest in the order of its axes.
//!
//! ```text
//! C[i, j] = sum over k of A[i, k] * B[k, j]      for i in parallel n, for j in parallel m:
//!                                                  C[i, j] = 0
//!                                                  for k in r: C[i, j] = C[i, j] + A[i, k] * B[k, j]
//! ```

use std::sync::Arc;

use tilewright_ir::{DataType, Definition, Diagnostic, ForKind, FuncAttrs, PrimFunc, Stmt, StmtKind, Var, validate};

use crate::config::{Arguments, Config, Report, RunError};
use crate::run::run;

/// Runs a definition on one argument for each parameter, inputs and outputs alike.
///
/// Stages run in order. An element that is a reduction starts from the identity of its operator and combines the values
/// in row-major order of the reduced axes.
///
/// # Errors
/// Those of [`run`]; a definition that is not well formed gives [`RunError::Input`].
pub fn run_definition(definition: &Definition, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let func = as_function(definition);
    let validated = validate(&func).map_err(|found| {
        found.into_iter().next().unwrap_or_else(|| Diagnostic::error("definition", None, "the definition is not valid"))
    })?;
    run(validated, args, config)
}

/// The function that defines what a definition computes. Stages that are not parameters become allocations around the
/// whole body.
pub fn as_function(definition: &Definition) -> PrimFunc {
    let params: Vec<_> =
        definition.params.iter().map(|buffer| Var::new(buffer.name.clone(), DataType::HANDLE)).collect();
    let buffer_map = params.iter().cloned().zip(definition.params.iter().cloned()).collect();
    // An element depends on earlier stages only, so the elements of a stage may be computed concurrently.
    let mut body = Stmt::seq(definition.stages.iter().map(|stage| stage.renewed().nest(ForKind::Parallel)).collect());
    for stage in definition.stages.iter().rev() {
        if !definition.params.contains(&stage.buffer) {
            body = Stmt::new(StmtKind::Allocate { buffer: stage.buffer.clone(), body: Arc::new(body) });
        }
    }
    PrimFunc { name: definition.name.clone(), params, buffer_map, attrs: FuncAttrs::default(), body }
}
