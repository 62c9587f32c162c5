//! Conditions on the integers of a call that the user says the caller guarantees.
//!
//! ```text
//! --assume 'n >= 0'     both programs begin with `assert n >= 0`, and the report lists the premise `assumed: n >= 0`
//! ```
//!
//! An assertion is a premise of every obligation behind it, and a run whose inputs violate it stops in both programs, so that it
//! shows no difference. What is assumed must have a value for all integers of the call; otherwise it would not say what it seems
//! to say, and it is refused.

use tilewright_ir::{Diagnostic, Expr, PrimFunc, Span, Stmt, StmtKind, Var};
use tilewright_script::{Symbols, read_condition, span_of_name};
use tilewright_verify::{Judge, Obligation, Premise, Verdict};

/// A condition that is assumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Assumption {
    /// As the user wrote it.
    pub text: String,
    /// In terms of the variables of a function.
    pub condition: Expr,
}

/// A condition that cannot be assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumeFault {
    /// As the user wrote it.
    pub text: String,
    /// What is wrong, with places in that text.
    pub faults: Vec<Diagnostic>,
}

/// Reads conditions for each of several functions. A condition is assumed of every function that has all of its names.
///
/// # Errors
/// The first condition that cannot be read, or that no function has the names of.
pub fn read(texts: &[String], funcs: &[&PrimFunc]) -> Result<Vec<Vec<Assumption>>, AssumeFault> {
    let mut assumed = vec![Vec::new(); funcs.len()];
    for text in texts {
        let fault = |faults: Vec<Diagnostic>| AssumeFault { text: text.clone(), faults };
        let (mut unknown, mut is_used) = (None, false);
        for (func, assumed) in funcs.iter().zip(&mut assumed) {
            match condition(text, func) {
                Ok(condition) => {
                    assumed.push(Assumption { text: text.clone(), condition });
                    is_used = true;
                }
                Err(Unread::Name(name)) => {
                    unknown.get_or_insert(name);
                }
                Err(Unread::Text(faults)) => return Err(fault(faults)),
            }
        }
        if let Some(unknown) = unknown.filter(|_| !is_used) {
            return Err(fault(vec![unknown]));
        }
    }
    Ok(assumed)
}

/// Why a condition cannot be read for a function.
enum Unread {
    /// The function has no integer of some name.
    Name(Diagnostic),
    /// The text is wrong.
    Text(Vec<Diagnostic>),
}

/// Reads a condition on the integers of a call.
fn condition(text: &str, func: &PrimFunc) -> Result<Expr, Unread> {
    let known: Vec<Var> = func.extents().into_iter().chain(func.scalars()).collect();
    let mut symbols: Symbols = known.iter().cloned().collect();
    let read = read_condition(text, &mut symbols);
    if let Some(other) = symbols.vars().get(known.len()) {
        return Err(Unread::Name(unknown_name(text, other.name(), func, &known)));
    }
    let condition = read.map_err(Unread::Text)?;
    for var in condition.vars() {
        let wrong = if !var.dtype().is_scalar() || var.dtype().scalar.integer_range().is_none() {
            format!("`{var}` has the type {}, and conditions are on integers", var.dtype())
        } else if known.iter().filter(|other| other.name() == var.name()).count() > 1 {
            format!("`{var}` is the name of several integers of `{}`", func.name)
        } else {
            continue;
        };
        return Err(Unread::Text(vec![Diagnostic::error("type", Some(span_of_name(var.name(), text)), wrong)]));
    }
    Ok(condition)
}

fn unknown_name(text: &str, name: &str, func: &PrimFunc, known: &[Var]) -> Diagnostic {
    let message = if func.buffers().iter().any(|buffer| buffer.name == name) {
        format!("`{name}` is a buffer, and what is assumed reads no memory")
    } else {
        format!("`{name}` is neither a scalar parameter nor an extent of `{}`", func.name)
    };
    let names: Vec<&str> = known.iter().map(Var::name).collect();
    let help = if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
    Diagnostic::error("unknown-name", Some(span_of_name(name, text)), message).with_help(help)
}

/// Returns what a function assumes of a call (`T.assume`).
pub fn of_function(func: &PrimFunc) -> Vec<Assumption> {
    let mut found = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Assert { cond, is_assumed: true, .. } = &stmt.kind {
            found.push(Assumption { text: cond.to_string(), condition: cond.clone() });
        }
    });
    found
}

/// Returns the function with assertions at its start.
#[must_use]
pub fn asserted(func: &PrimFunc, assumed: &[Assumption]) -> PrimFunc {
    let assert = |Assumption { condition, .. }: &Assumption| {
        let message = format!("assumed: {condition}");
        Stmt::new(StmtKind::Assert { cond: condition.clone(), message, is_assumed: false })
    };
    if assumed.is_empty() {
        return func.clone();
    }
    let stmts = assumed.iter().map(assert).chain([func.body.clone()]).collect();
    PrimFunc { body: Stmt::seq(stmts), ..func.clone() }
}

/// Checks that each condition has a value for all integers of a call for which those in front of it hold.
///
/// # Errors
/// Arithmetic in a condition may leave its type or divide by zero.
pub fn have_values(judge: &Judge, func: &PrimFunc, assumed: &[Assumption]) -> Result<(), AssumeFault> {
    let empty = PrimFunc { body: Stmt::seq(Vec::new()), ..func.clone() };
    for (position, Assumption { text, condition }) in assumed.iter().enumerate() {
        let [known, found] = [position, position + 1].map(|count| open(judge, &asserted(&empty, &assumed[..count])));
        if let Some(found) = found.get(known.len()) {
            let message = format!("`{condition}` may have no value for some integers: {found}");
            let help = "exclude them in front of it, or compute in a wider type: `T.Cast(\"int64\", n)`";
            let whole = Span::new(0, u32::try_from(text.len()).unwrap_or(u32::MAX));
            let faults = vec![Diagnostic::error("assumption-overflow", Some(whole), message).with_help(help)];
            return Err(AssumeFault { text: text.clone(), faults });
        }
    }
    Ok(())
}

/// Why the obligations `overflow` of a program are not proved, in its order.
fn open(judge: &Judge, func: &PrimFunc) -> Vec<String> {
    let overflow = judge.check_program(func).into_iter().filter(|report| report.obligation == Obligation::Overflow);
    overflow
        .filter_map(|report| match report.verdict {
            Verdict::Refuted(found) => Some(found.to_string()),
            Verdict::Unknown(reason) => Some(reason.to_string()),
            Verdict::Proved(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => None,
        })
        .collect()
}

/// The premises of a proof under these conditions.
pub fn premises(assumed: &[Assumption]) -> impl Iterator<Item = Premise> {
    assumed.iter().map(|assumed| Premise::Assumed(assumed.condition.to_string()))
}
