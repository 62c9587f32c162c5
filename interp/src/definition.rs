//! Running a definition: each stage becomes a plain loop nest in the order of its axes.

use std::sync::Arc;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    Axis, DataType, Definition, Diagnostic, Expr, ForKind, FuncAttrs, PrimFunc, Stage, StageBody, Stmt, StmtKind, Var,
    validate,
};

use crate::config::{Arguments, Config, Report, RunError};
use crate::run::run;

/// Runs a definition on arguments for its parameters, inputs and outputs: stage by stage, each element's reduction
/// in row-major order of the reduced axes, starting from the identity.
///
/// # Errors
/// As [`run`]; a definition that is not well formed is an input error.
pub fn run_definition(definition: &Definition, args: &mut Arguments, config: &Config) -> Result<Report, RunError> {
    let func = as_function(definition);
    let validated = validate(&func).map_err(|found| {
        found.into_iter().next().unwrap_or_else(|| Diagnostic::error("definition", None, "the definition is not valid"))
    })?;
    run(validated, args, config)
}

/// The function that a definition means.
pub fn as_function(definition: &Definition) -> PrimFunc {
    let params: Vec<_> =
        definition.params.iter().map(|buffer| Var::new(buffer.name.clone(), DataType::HANDLE)).collect();
    let buffer_map = params.iter().cloned().zip(definition.params.iter().cloned()).collect();
    let mut body = Stmt::seq(definition.stages.iter().map(stage).collect());
    for stage in definition.stages.iter().rev() {
        if !definition.params.contains(&stage.buffer) {
            body = Stmt::new(StmtKind::Allocate { buffer: stage.buffer.clone(), body: Arc::new(body) });
        }
    }
    PrimFunc { name: definition.name.clone(), params, buffer_map, attrs: FuncAttrs::default(), body }
}

/// Axes may be shared between stages; the loops of each stage get variables of their own.
fn renamed(axes: &[Axis]) -> Vec<Var> {
    axes.iter().map(|axis| Var::new(axis.var.name(), axis.var.dtype())).collect()
}

fn nest(axes: &[Axis], vars: &[Var], kind: ForKind, body: Stmt) -> Stmt {
    let loops = axes.iter().zip(vars).rev();
    loops.fold(body, |body, (axis, var)| Stmt::for_loop(var, axis.extent.clone(), kind, body))
}

fn stage(stage: &Stage) -> Stmt {
    let vars = renamed(&stage.axes);
    let at: Vec<_> = vars.iter().map(Expr::from).collect();
    let mut fresh = Substitution::new(stage.axes.iter().map(|axis| &axis.var), at.clone());
    let buffer = &stage.buffer;
    let body = match &stage.body {
        StageBody::Elementwise(value) => Stmt::store(buffer, at, fresh.apply(value)),
        StageBody::Reduce { op, axes, source } => {
            let reduced = renamed(axes);
            for (axis, var) in axes.iter().zip(&reduced) {
                fresh.insert(&axis.var, Expr::from(var));
            }
            let start = Stmt::store(buffer, at.clone(), op.identity_expr(buffer.dtype.scalar));
            let value = Expr::binary(op.combine(), Expr::load(buffer, at.clone()), fresh.apply(source));
            let update = Stmt::store(buffer, at, value);
            Stmt::seq(vec![start, nest(axes, &reduced, ForKind::Serial, update)])
        }
    };
    // An element depends on earlier stages only.
    nest(&stage.axes, &vars, ForKind::Parallel, body)
}
