//! Passes as text: the program before, the program after, and what is claimed of the buffers; and their broken twins.

use std::collections::HashMap;
use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, BufferChange, BufferClaim, Evidence, Expr, IndexMap, PrimFunc, StmtKind, Var, validate};
use tilewright_script::{Symbols, read_index_map};
use tilewright_verify::{ReasonKind, Report, Verdict};

use super::{buffer, judge, program};

/// A pass: the two programs from `def` on, and its claims.
#[derive(Clone)]
pub(crate) struct Pair {
    before: String,
    after: String,
    claims: Vec<Claim>,
}

#[derive(Clone)]
struct Claim {
    change: BufferChange,
    before: String,
    after: String,
    map: String,
}

impl Pair {
    pub(crate) fn new(before: &str, after: &str) -> Self {
        Self { before: before.into(), after: after.into(), claims: Vec::new() }
    }

    /// Each of the two programs and itself, with nothing claimed.
    pub(crate) fn against_themselves(&self) -> [Self; 2] {
        [&self.before, &self.after].map(|program| Self::new(program, program))
    }

    /// With a claim of the buffers `A -> B`: the index moved by this lambda.
    pub(crate) fn claim(mut self, change: BufferChange, buffers: &str, map: &str) -> Self {
        let (before, after) = buffers.split_once(" -> ").unwrap();
        self.claims.push(Claim { change, before: before.into(), after: after.into(), map: map.into() });
        self
    }

    /// The twin with one place of the program after changed.
    pub(crate) fn twin(&self, right: &str, wrong: &str) -> Self {
        Self { after: replaced(&self.after, right, wrong), ..self.clone() }
    }

    /// The twin with one place of the program before changed.
    pub(crate) fn twin_before(&self, right: &str, wrong: &str) -> Self {
        Self { before: replaced(&self.before, right, wrong), ..self.clone() }
    }

    /// The twin with one place of both programs changed.
    pub(crate) fn twins(&self, right: &str, wrong: &str) -> Self {
        self.twin_before(right, wrong).twin(right, wrong)
    }

    /// The twin with one place of each claimed map changed.
    pub(crate) fn twin_claim(&self, right: &str, wrong: &str) -> Self {
        let mut twin = self.clone();
        for claim in &mut twin.claims {
            claim.map = replaced(&claim.map, right, wrong);
        }
        twin
    }

    /// The same pass with other words, such as numbers.
    pub(crate) fn with_words(&self, words: &[(&str, &str)]) -> Self {
        let other = |text: &String| with_words(text, words);
        let claims = self.claims.iter().map(|claim| Claim { map: other(&claim.map), ..claim.clone() }).collect();
        Self { before: other(&self.before), after: other(&self.after), claims }
    }

    /// The programs, the one after in terms of the one before, and the claims.
    pub(crate) fn programs(&self) -> (PrimFunc, PrimFunc, Evidence) {
        let (before, after) = (program(&self.before), program(&self.after));
        let changed: Vec<_> = self.claims.iter().map(|claim| (&*claim.before, &*claim.after)).collect();
        let after = in_terms_of(&before, &after, &changed);
        let known = variables(&before);
        let claim = |claim: &Claim| {
            let (old, new) = (buffer(&before, &claim.before), buffer(&after, &claim.after));
            let map = map_among(&claim.map, &old.shape, &known);
            BufferClaim { before: old, after: new, map, change: claim.change, padded_axes: Vec::new() }
        };
        let buffers = self.claims.iter().map(claim).collect();
        (before.clone(), after.clone(), Evidence { pass: "by hand".into(), buffers, ..Evidence::default() })
    }

    pub(crate) fn judged(&self) -> Vec<Report> {
        let (before, after, evidence) = self.programs();
        judged(&before, &after, &evidence)
    }

    #[track_caller]
    pub(crate) fn is_proved(&self) {
        self.is_proved_by(6);
    }

    /// All of it is proved, in at least so many reports.
    #[track_caller]
    pub(crate) fn is_proved_by(&self, least: usize) {
        let reports = self.judged();
        assert!(reports.len() >= least, "{}", reports.len());
        assert!(reports.iter().all(|report| report.verdict.is_proved()));
    }

    #[track_caller]
    pub(crate) fn is_not_proved(&self) {
        assert!(self.judged().iter().any(|report| !report.verdict.is_proved()), "everything is proved");
    }

    /// Not proved for this obligation, and the difference is named.
    #[track_caller]
    pub(crate) fn differs_in(&self, obligation: &str) -> String {
        difference(&self.judged(), obligation)
    }

    /// Nobody says that it is right.
    #[track_caller]
    pub(crate) fn is_unknown(&self) -> String {
        let reports = self.judged();
        let found = reports.iter().find_map(|report| match &report.verdict {
            Verdict::Unknown(reason) => Some(reason.to_string()),
            _ => None,
        });
        found.expect("something is unknown")
    }
}

/// A text with its only place of these words changed.
#[track_caller]
pub(crate) fn replaced(text: &str, right: &str, wrong: &str) -> String {
    assert_eq!(text.matches(right).count(), 1, "`{right}` is not there once: {text}");
    text.replace(right, wrong)
}

/// A text with other words, all at once.
pub(crate) fn with_words(text: &str, words: &[(&str, &str)]) -> String {
    let is_end = |c: char| !c.is_alphanumeric() && c != '_' && c != '.';
    let other = |piece: &str| {
        let word = piece.trim_end_matches(is_end);
        let found = words.iter().find(|(old, _)| *old == word);
        found.map_or(piece.to_owned(), |(_, new)| format!("{new}{}", &piece[word.len()..]))
    };
    text.split_inclusive(is_end).map(other).collect()
}

/// Judges a pass, and says what it came to.
pub(crate) fn judged(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
    validate(before).unwrap();
    validate(after).unwrap();
    shown(judge().check_pass(before, after, evidence))
}

pub(crate) fn shown(reports: Vec<Report>) -> Vec<Report> {
    for report in &reports {
        let (id, subject, ms) = (report.obligation, &report.subject, report.ms);
        eprintln!("{id:13} {subject:60} {} [{}] {ms:.0} ms", report.verdict, report.method);
    }
    reports
}

/// The concrete difference that a report about this obligation names: of a map a counterexample, of two programs a part that
/// differs. The latter is unknown until both are run.
pub(crate) fn difference_in(report: &Report) -> Option<String> {
    match &report.verdict {
        Verdict::Refuted(found) => Some(found.to_string()),
        Verdict::Unknown(reason) if reason.kind() == ReasonKind::Differs => Some(reason.to_string()),
        Verdict::Proved(_) | Verdict::Unknown(_) | Verdict::Skipped(_) | Verdict::Vacuous(_) => None,
    }
}

#[track_caller]
pub(crate) fn difference(reports: &[Report], obligation: &str) -> String {
    let found = reports.iter().filter(|report| report.obligation.id() == obligation).find_map(difference_in);
    found.unwrap_or_else(|| panic!("no difference was named for {obligation}"))
}

/// The program after, as a pass makes it from the program before: parameters correspond by position, memory by the claims
/// and else by name. A buffer of which nothing is claimed is the same, if it has the same name, memory and form.
pub(crate) fn in_terms_of(before: &PrimFunc, after: &PrimFunc, changed: &[(&str, &str)]) -> PrimFunc {
    let (old, new) = (before.buffers(), after.buffers());
    let named = |buffers: &[Buffer], name: &str| buffers.iter().find(|buffer| buffer.name == name).cloned();
    let params = before.params.iter().zip(&after.params);
    let passed = params.clone().filter_map(|(x, y)| Some((before.param_buffer(x)?, after.param_buffer(y)?)));
    let mut memory: Vec<(Buffer, Buffer)> = passed.map(|(x, y)| (x.clone(), y.clone())).collect();
    memory.extend(changed.iter().filter_map(|(x, y)| Some((named(&old, x)?, named(&new, y)?))));
    memory.extend(new.iter().filter_map(|buffer| Some((named(&old, &buffer.name)?, buffer.clone()))));
    let symbols = before.symbols();
    let same_symbol = |var: Var| Some((symbols.iter().find(|old| old.name() == var.name())?.clone(), var));
    let vars = params.map(|(x, y)| (x.clone(), y.clone())).chain(after.symbols().into_iter().filter_map(same_symbol));
    let data = memory.iter().map(|(x, y)| (x.data.clone(), y.data.clone()));
    let changed = changed.iter().map(|(_, name)| (*name).to_owned()).collect();
    let mut names = Names { vars: Substitution::default(), buffers: HashMap::new(), before: old, changed };
    for (old, new) in vars.chain(data) {
        if names.vars.get(&new).is_none() {
            names.vars.insert(&new, Expr::from(old));
        }
    }
    let Ok(body) = names.stmt(&after.body);
    let mut buffer_of = |(_, buffer): &(Var, Buffer)| names.buffer(buffer).unwrap_or_else(|never| match never {});
    let buffers: Vec<_> = after.buffer_map.iter().map(&mut buffer_of).collect();
    let handles = before.params.iter().filter(|param| before.param_buffer(param).is_some()).cloned();
    let (params, buffer_map) = (before.params.clone(), handles.zip(buffers).collect());
    PrimFunc { name: before.name.clone(), params, buffer_map, attrs: after.attrs.clone(), body }
}

struct Names {
    vars: Substitution,
    buffers: HashMap<Buffer, Buffer>,
    before: Vec<Buffer>,
    /// The names of the buffers that are not those before.
    changed: Vec<String>,
}

impl Rewrite for Names {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.vars.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        if let Some(known) = self.buffers.get(buffer) {
            return Ok(known.clone());
        }
        let renamed = buffer.with(|info| {
            let all = info.shape.iter_mut().chain(info.strides.iter_mut().flatten()).chain([&mut info.elem_offset]);
            all.for_each(|expr| *expr = self.vars.apply(expr));
            if let Some(Expr::Var(data)) = self.vars.get(&info.data) {
                info.data = data.clone();
            }
        });
        let form = |buffer: &Buffer| {
            let info = buffer.info().clone();
            let memory = (info.data, info.elem_offset, info.strides, info.scope);
            (info.name, info.dtype, info.shape, info.axis_separators, memory)
        };
        let is_same = |old: &&Buffer| !self.changed.contains(&old.name) && form(old) == form(&renamed);
        let renamed = self.before.iter().find(is_same).cloned().unwrap_or(renamed);
        self.buffers.insert(buffer.clone(), renamed.clone());
        Ok(renamed)
    }
}

/// The symbolic extents, the loop variables and the bindings of a program.
fn variables(func: &PrimFunc) -> Vec<Var> {
    let mut vars = func.symbols();
    func.body.walk(&mut |stmt| match &stmt.kind {
        StmtKind::For(inner) => vars.push(inner.var.clone()),
        StmtKind::Let { var, .. } => vars.push(var.clone()),
        _ => {}
    });
    vars
}

/// The map of a lambda over the indices of a shape. All other names are those of the variables.
fn map_among(text: &str, shape: &[Expr], vars: &[Var]) -> IndexMap {
    let mut symbols = Symbols::default();
    let map = read_index_map(text, Some(shape), &mut symbols).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
    let meant = |symbol: &Var| Expr::from(vars.iter().find(|var| var.name() == symbol.name()).unwrap());
    let names = Substitution::new(symbols.vars(), symbols.vars().iter().map(meant));
    let outputs = map.outputs().iter().map(|output| names.apply(output)).collect();
    IndexMap::new(map.vars().to_vec(), shape.to_vec(), outputs, map.axis_separators().positions().to_vec()).unwrap()
}
