//! The report of `tilewright validate` as text and as JSON: schema `tilewright.validate/1` for two files,
//! `tilewright.chain/1` for several.
//!
//! ```text
//! before.py -> after.py
//!   step                       verdict          ms  obligations
//!   main                       proved        116.1  bounds 13, injective 3, iteration 4, order 2
//!   premise: at least 1: n
//!   main holds for extents with n >= 0
//! proved under 1 premise: 22 of 22 obligations proved
//! ```

use serde::Serialize;
use tilewright_ir::{BufferChange, BufferClaim, Span};
use tilewright_script::Source;

use super::check::{PlaceView, StepView};
use super::lines::{hanging, line};
use super::obligation::Texts;
use super::text::{Style, passes, premises, under};
use crate::json::to_line;
use crate::pipeline::findings::{LoopMap, Tried, Validity, Way};
use crate::pipeline::outcome::{StepOutcome, Summary};

/// What was decided about two functions that correspond.
#[derive(Clone, Debug)]
pub struct FunctionPair {
    /// The obligations, by the name of the function before.
    pub step: StepOutcome,
    /// The claims about buffers.
    pub claims: Vec<BufferClaim>,
    /// The claims about iterations.
    pub loops: Vec<LoopMap>,
    /// How the pair was proved or refuted.
    pub way: Option<Way>,
    /// If it is neither proved nor refuted: each way, and why it did not decide the pair.
    pub tried: Vec<Tried>,
    /// The calls that a proof is about.
    pub validity: Validity,
}

/// What was decided about two files.
#[derive(Clone, Debug)]
pub struct FilePair<'a> {
    /// The file before.
    pub before: &'a Source,
    /// The file after.
    pub after: &'a Source,
    /// One entry for each pair of functions.
    pub functions: Vec<FunctionPair>,
}

impl FunctionPair {
    /// The calls for which the verdict holds: those that a proof is about, or the extents of a refutation. `None` if the verdict
    /// is neither.
    pub fn holds_for(&self) -> Option<String> {
        match self.step.summary() {
            Summary::Proved if !self.step.reports.is_empty() => Some(self.validity.to_string()),
            Summary::Refuted => {
                let shape =
                    self.step.reports.iter().find_map(|report| Some(&report.verdict.counterexample()?.shape))?;
                let extents: Vec<String> = shape.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                Some(if extents.is_empty() { self.validity.to_string() } else { extents.join(", ") })
            }
            Summary::Proved | Summary::Skipped | Summary::Vacuous | Summary::Unknown | Summary::Mismatch => None,
        }
    }
}

impl FilePair<'_> {
    /// The worst verdict of the functions. A pair without obligations proves nothing, so it counts as skipped.
    pub fn summary(&self) -> Summary {
        let empty = self.functions.iter().any(|pair| pair.step.reports.is_empty()).then_some(Summary::Skipped);
        Summary::worst(self.functions.iter().map(|pair| pair.step.summary()).chain(empty))
    }

    fn texts(&self) -> Texts<'_> {
        Texts { before: Some(self.before), after: Some(self.after) }
    }

    /// The report as text; ends with a newline.
    pub fn to_text(&self, style: Style) -> String {
        let mut out = String::new();
        line(&mut out, &style.paint("1", &format!("{} -> {}", self.before.name, self.after.name)), style);
        let steps: Vec<StepOutcome> = self.functions.iter().map(|pair| pair.step.clone()).collect();
        passes(&mut out, &steps, self.texts(), style);
        premises(&mut out, &steps, style);
        for pair in self.functions.iter().filter(|pair| pair.step.summary() == Summary::Proved) {
            if let Some(calls) = pair.holds_for() {
                hanging(&mut out, &format!("  {} holds for ", pair.step.name), &calls, 4, style);
            }
        }
        for pair in self.functions.iter().filter(|pair| !pair.tried.is_empty()) {
            line(&mut out, &format!("  {} was tried", pair.step.name), style);
            for Tried { way, why } in &pair.tried {
                hanging(&mut out, &format!("    {:<12} ", way.word()), why, 19, style);
            }
        }
        let all = steps.iter().flat_map(|step| &step.reports);
        let (proved, count) = (all.clone().filter(|report| report.verdict.is_proved()).count(), all.count());
        let verdict = style.verdict(self.summary(), 0);
        let under = under(self.summary(), &steps);
        line(&mut out, &format!("{verdict}{under}: {proved} of {count} obligations proved"), style);
        out
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(&Document { schema: "tilewright.validate/1", step: FilesView::new(self) })
    }
}

/// The worst verdict of the steps of a chain, and the position of the first step with that verdict, unless all are proved.
fn worst(steps: &[FilePair<'_>]) -> (Summary, Option<usize>) {
    let verdict = Summary::worst(steps.iter().map(FilePair::summary));
    let first = steps.iter().position(|step| step.summary() == verdict);
    (verdict, first.filter(|_| verdict != Summary::Proved))
}

/// The last line of the text about several steps, each of which has its own report; ends with a newline.
pub fn chain_text(steps: &[FilePair<'_>], style: Style) -> String {
    let (verdict, first) = worst(steps);
    let proved = steps.iter().filter(|step| step.summary() == Summary::Proved).count();
    let wrong = first.and_then(|first| steps.get(first)).map(|step| {
        let (before, after) = (&step.before.name, &step.after.name);
        format!("; the first step that is {} is {before} -> {after}", verdict.word())
    });
    let wrong = wrong.unwrap_or_default();
    let said = format!("{}: {proved} of {} steps proved{wrong}", style.verdict(verdict, 0), steps.len());
    let mut out = String::new();
    line(&mut out, &said, style);
    out
}

/// The JSON document about several steps, on one line.
pub fn chain_json(steps: &[FilePair<'_>]) -> String {
    let (verdict, first) = worst(steps);
    to_line(&ChainDocument {
        schema: "tilewright.chain/1",
        verdict,
        first_wrong: first.map(|first| first + 1),
        steps: steps.iter().map(FilesView::new).collect(),
    })
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    step: FilesView<'a>,
}

#[derive(Serialize)]
struct ChainDocument<'a> {
    schema: &'static str,
    verdict: Summary,
    first_wrong: Option<usize>,
    steps: Vec<FilesView<'a>>,
}

/// Two files.
#[derive(Serialize)]
struct FilesView<'a> {
    before: &'a str,
    after: &'a str,
    verdict: Summary,
    functions: Vec<PairView<'a>>,
}

impl<'a> FilesView<'a> {
    fn new(pair: &'a FilePair<'a>) -> Self {
        let texts = pair.texts();
        let view = |function: &'a FunctionPair| PairView {
            step: StepView::new(&function.step, texts),
            method: function.way.map(Way::word),
            holds_for: function.holds_for(),
            claims: ClaimsView {
                buffers: function.claims.iter().map(|claim| BufferClaimView::new(claim, texts)).collect(),
                loops: function.loops.iter().map(|claim| LoopView::new(claim, texts)).collect(),
            },
            tried: function.tried.iter().map(|tried| TriedView { way: tried.way.word(), why: &tried.why }).collect(),
        };
        Self {
            before: &pair.before.name,
            after: &pair.after.name,
            verdict: pair.summary(),
            functions: pair.functions.iter().map(view).collect(),
        }
    }
}

/// Two functions.
#[derive(Serialize)]
struct PairView<'a> {
    #[serde(flatten)]
    step: StepView<'a>,
    method: Option<&'static str>,
    holds_for: Option<String>,
    claims: ClaimsView<'a>,
    tried: Vec<TriedView<'a>>,
}

/// A way that did not decide the pair.
#[derive(Serialize)]
struct TriedView<'a> {
    way: &'static str,
    why: &'a str,
}

#[derive(Serialize)]
struct ClaimsView<'a> {
    buffers: Vec<BufferClaimView<'a>>,
    loops: Vec<LoopView<'a>>,
}

/// How the indices of a buffer moved.
#[derive(Serialize)]
struct BufferClaimView<'a> {
    before: &'a str,
    after: &'a str,
    change: &'static str,
    map: String,
    before_place: Option<PlaceView<'a>>,
    after_place: Option<PlaceView<'a>>,
}

impl<'a> BufferClaimView<'a> {
    fn new(claim: &'a BufferClaim, texts: Texts<'a>) -> Self {
        Self {
            before: &claim.before.name,
            after: &claim.after.name,
            change: match claim.change {
                BufferChange::Layout => "layout",
                BufferChange::Flatten => "flatten",
                BufferChange::Texture => "texture",
                BufferChange::Rename => "rename",
            },
            map: claim.map.to_string(),
            before_place: place(texts.before, claim.before.span),
            after_place: place(texts.after, claim.after.span),
        }
    }
}

/// What became of the iterations of a store.
#[derive(Serialize)]
struct LoopView<'a> {
    before: &'a str,
    after: &'a str,
    when: Option<&'a str>,
    forward: &'a str,
    back: &'a str,
    before_place: Option<PlaceView<'a>>,
    after_place: Option<PlaceView<'a>>,
}

impl<'a> LoopView<'a> {
    fn new(claim: &'a LoopMap, texts: Texts<'a>) -> Self {
        Self {
            before: &claim.before.0,
            after: &claim.after.0,
            when: claim.when.as_deref(),
            forward: &claim.forward,
            back: &claim.back,
            before_place: place(texts.before, claim.before.1),
            after_place: place(texts.after, claim.after.1),
        }
    }
}

fn place(source: Option<&Source>, span: Option<Span>) -> Option<PlaceView<'_>> {
    Some(PlaceView::new(source?, span?))
}
