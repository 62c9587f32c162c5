//! Programs that check the description of their call, compared with those that do not.
//!
//! ```text
//! def main(A: (n, 8)): body      def main(A: (n, 8), num_args, A_ndim, A_shape_0, ...):
//!                                    assert num_args == 1
//!                                    assert A_ndim == 2 ...
//!                                    body
//! ```
//!
//! The definition of the language says which parts a description has, and which values they have in a right call
//! ([`tilewright_ir::convention`]). Three things have to hold. Behind its first assertions, the program after is the program before. A
//! right description meets each of these assertions, so no right call is refused. And they imply that the description is right, part
//! by part, so no wrong call is accepted. Assertions cannot be left out or be weaker.

use tilewright_ir::convention::{PackedField, packed_fields};
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Evidence, Expr, FuncAttrs, PrimFunc, Stmt, StmtKind, Var};

use crate::door::inspected;
use crate::judge::{Decision, Judge, Report, all_of, suspected, unsupported};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::pass::holds;
use crate::path::{Path, Step};

/// A program that checks its call, in terms of the one that does not.
struct Packed {
    /// The extents and scalars of the program after, which are those of the program before.
    path: Path,
    /// The conditions that are asserted first.
    asserted: Vec<Expr>,
    /// What is said of the call, in the variables of the program after.
    fields: Vec<PackedField>,
}

impl Judge {
    /// Decides whether the program after is the program before with a check of its call in front.
    pub(crate) fn check_packed(&self, (before, after): (&PrimFunc, &PrimFunc), evidence: &Evidence) -> Vec<Report> {
        let packed = match packed(before, after, evidence) {
            Ok(packed) => packed,
            Err(reason) => {
                return vec![Self::report(Obligation::Simulation, "the program behind its checks", || {
                    unsupported(reason)
                })];
            }
        };
        vec![
            Self::report(Obligation::Simulation, "the program behind its checks", || (inspected(), Method::SameText)),
            Self::report(Obligation::Simulation, "a right call is accepted", || suspected(packed.accepts(self))),
            Self::report(Obligation::Simulation, "a wrong call is refused", || suspected(packed.refuses(self))),
        ]
    }
}

impl Packed {
    /// A right description meets each assertion. A field that may have any value stays a variable.
    fn accepts(&self, judge: &Judge) -> Decision {
        let mut right = Substitution::default();
        for field in &self.fields {
            if let Some(value) = &field.value {
                right.insert(&field.var, right.apply(value));
            }
        }
        all_of(self.asserted.iter().map(|cond| holds(judge, &self.path, &right.apply(cond))))
    }

    /// A description that meets all assertions is right.
    fn refuses(&self, judge: &Judge) -> Decision {
        let mut path = self.path.clone();
        for cond in &self.asserted {
            path.steps.push(Step::Guard(cond.clone(), true));
        }
        all_of(self.fields.iter().filter_map(|field| {
            let value = field.value.clone()?;
            let is_right = Expr::binary(BinaryOp::Eq, Expr::from(&field.var), value);
            Some(holds(judge, &path, &is_right))
        }))
    }
}

/// The checks of the program after, if it is the program before behind them.
fn packed(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<Packed, String> {
    if !evidence.buffers.is_empty() || !evidence.fills.is_empty() {
        return Err("the buffers of a program are claimed to be moved by its checks".into());
    }
    let fields = packed_fields(before);
    let n_own = before.params.len();
    let added = after.params.get(n_own..).unwrap_or_default();
    let is_same = |(field, var): (&PackedField, &Var)| {
        field.var.dtype() == var.dtype() && after.param_buffer(var).is_none() && field.var.name() == var.name()
    };
    if added.len() != fields.len() || !fields.iter().zip(added).all(is_same) {
        return Err("the parameters that are added are not the description of a call".into());
    }
    let body = parts(&after.body);
    let n_checks = body.len().checked_sub(parts(&before.body).len());
    let (checks, rest) = n_checks.and_then(|at| body.split_at_checked(at)).ok_or("statements are missing")?;
    let rest = rest.to_vec();
    let params = after.params[..n_own].to_vec();
    let behind = PrimFunc { params, body: Stmt::seq(rest), attrs: without_hints(after), ..after.clone() };
    let body = Stmt::seq(parts(&before.body).to_vec());
    let plain = PrimFunc { body, attrs: without_hints(before), ..before.clone() };
    if !funcs_equal(&plain, &behind, false) {
        return Err("behind its checks the program is another one than before".into());
    }
    let asserted = checks.iter().map(|check| match &check.kind {
        // What is assumed refuses nothing.
        StmtKind::Assert { cond, is_assumed: false, .. } if !cond.reads_memory() => Ok(cond.clone()),
        _ => Err("a statement in front of the program is no check of its call".to_owned()),
    });
    let asserted = asserted.collect::<Result<Vec<_>, _>>()?;
    Ok(Packed { path: Path::of(after), asserted, fields: in_terms_of(&fields, (before, &behind), added) })
}

/// The fields in the variables of the program after.
fn in_terms_of(fields: &[PackedField], (before, after): (&PrimFunc, &PrimFunc), added: &[Var]) -> Vec<PackedField> {
    let mut renames = Substitution::default();
    let own = before.params.iter().cloned().zip(after.params.iter().cloned());
    let symbols = before.symbols().into_iter().zip(after.symbols());
    let new = fields.iter().map(|field| field.var.clone()).zip(added.iter().cloned());
    for (old, new) in own.chain(symbols).chain(new) {
        renames.insert(&old, Expr::from(&new));
    }
    let renamed = |(field, var): (&PackedField, &Var)| PackedField {
        var: var.clone(),
        value: field.value.as_ref().map(|value| renames.apply(value)),
        text: field.text.clone(),
    };
    fields.iter().zip(added).map(renamed).collect()
}

/// The attributes without those that ask for passes or tell other tools something.
fn without_hints(func: &PrimFunc) -> FuncAttrs {
    FuncAttrs { other: Vec::new(), ..func.attrs.clone() }
}

/// The statements of a body.
fn parts(body: &Stmt) -> &[Stmt] {
    match &body.kind {
        StmtKind::Seq(parts) => parts,
        _ => std::slice::from_ref(body),
    }
}
