//! Z3's answer to a query given as text, read by Z3's own parser: this is how a certificate is checked again.
//!
//! ```text
//! (declare-const v0 Int) (assert (not (< (mod v0 8) 8))) (check-sat)   ->   unsat
//! ```
//!
//! The text comes from a file and is not believed: [`fault`] allows only declarations, definitions and assertions, one
//! on each line, so that a file cannot change options, pop assertions or ask something else.

use super::worker::{internal, reason};
use super::{Budget, SolverError, z3_version};
use std::time::Instant;

/// The answer of a solver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextAnswer {
    /// The assertions contradict each other.
    Unsat,
    /// The assertions have a model.
    Sat,
    /// No answer, for this reason.
    Unknown(String),
}

/// Why a text is not a query of a certificate; `None` if it is one.
///
/// Every line must be a comment or one of a few commands, so that the text asserts what a reader sees and asks once.
pub fn fault(text: &str) -> Option<String> {
    let known = ["(set-info :status ", "(set-logic ", "(declare-const ", "(declare-fun ", "(define-fun ", "(assert "];
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty() && !line.starts_with(';')).collect();
    let Some((last, commands)) = lines.split_last() else { return Some("it is empty".into()) };
    let wrong = commands.iter().find(|line| !known.iter().any(|command| line.starts_with(command)) || !is_one(line));
    match wrong {
        Some(line) => Some(format!("`{}` is no line of a certificate", line.chars().take(60).collect::<String>())),
        None if *last != "(check-sat)" => Some("it does not end with (check-sat)".into()),
        None if text.contains('\0') => Some("it holds a zero byte".into()),
        None if !text.is_ascii() && commands.iter().any(|line| !line.is_ascii()) => {
            Some("a command is not plain ASCII".into())
        }
        None => None,
    }
}

/// Whether a line is a single balanced expression without comments and quoted names.
fn is_one(line: &str) -> bool {
    let mut depth = 0i64;
    for (position, byte) in line.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b';' | b'|' | b'"' | 0 => return false,
            _ => {}
        }
        if depth <= 0 && position + 1 < line.len() {
            return false;
        }
    }
    depth == 0
}

/// Asks Z3 about a text, in a new context.
///
/// # Errors
/// The text is not a query of a certificate, or Z3 does not read all of it.
pub fn answer(text: &str, budget: Budget) -> Result<TextAnswer, SolverError> {
    z3_version()?;
    if let Some(fault) = fault(text) {
        return Err(internal(&fault));
    }
    let asserted = text.lines().filter(|line| line.starts_with("(assert ")).count();
    // Z3's incremental core first; the tactics decide some goals that it does not.
    match ask(text, asserted, budget, true)? {
        TextAnswer::Unknown(_) => ask(text, asserted, budget, false),
        answer => Ok(answer),
    }
}

/// Gives a text to Z3's incremental core, or to its tactics. Fails unless Z3 reads all of its assertions.
fn ask(text: &str, asserted: usize, budget: Budget, incremental: bool) -> Result<TextAnswer, SolverError> {
    z3::with_z3_config(&z3::Config::new(), || {
        let solver = z3::Solver::new();
        let mut params = z3::Params::new();
        params.set_u32("random_seed", budget.seed);
        params.set_u32("rlimit", budget.rlimit);
        params.set_u32("timeout", budget.timeout_ms);
        solver.set_params(&params);
        if incremental {
            solver.push();
        }
        solver.from_string(text);
        let read = solver.get_assertions().len();
        if read != asserted {
            return Err(internal(&format!("Z3 reads {read} of {asserted} assertions")));
        }
        let start = Instant::now();
        Ok(match solver.check() {
            z3::SatResult::Unsat => TextAnswer::Unsat,
            z3::SatResult::Sat => TextAnswer::Sat,
            z3::SatResult::Unknown => TextAnswer::Unknown(reason(&solver, budget, start.elapsed()).to_string()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(assertion: &str) -> String {
        format!(
            "; a title\n(set-info :status unsat)\n(set-logic ALL)\n(declare-const v0 Int)\n{assertion}\n(check-sat)\n"
        )
    }

    #[test]
    fn texts_are_answered_as_they_stand() {
        let budget = Budget::default();
        assert_eq!(answer(&query("(assert (< v0 v0))"), budget), Ok(TextAnswer::Unsat));
        assert_eq!(answer(&query("(assert (< v0 (+ v0 1)))"), budget), Ok(TextAnswer::Sat));
        assert_eq!(answer(&query("(assert true)\n(assert false)"), budget), Ok(TextAnswer::Unsat));
        assert!(answer(&query("(assert (< v0 v1))"), budget).is_err(), "an unknown name");
    }

    #[test]
    fn only_the_commands_of_a_certificate_are_read() {
        for line in [
            "(reset-assertions)",
            "(assert false) (reset)",
            "(assert false",
            "(assert false))",
            "(push 1)",
            "(set-option :rlimit 1)",
            "(assert (= |a| 1))",
            "assert",
        ] {
            assert!(fault(&query(line)).is_some(), "{line}");
        }
        assert!(fault("(check-sat)\n(check-sat)\n").is_some());
        assert!(fault("").is_some() && fault("(set-logic ALL)\n").is_some());
        assert_eq!(fault(&query("(assert (< v0 v0))")), None);
    }
}
