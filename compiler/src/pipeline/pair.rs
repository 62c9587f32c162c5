//! Relates two functions for translation validation: finds which buffers correspond, and how their indices moved, and
//! states it as evidence that the judge checks.

mod grouped;
mod symbols;
mod vectors;
mod ways;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, BufferChange, BufferClaim, Diagnostic, Evidence, Expr, IndexMap, PrimFunc,
    Severity, Var,
};
use tilewright_script::{Symbols, read_index_map};
use tilewright_verify::{Judge, Premise, Report, Verdict};

pub use symbols::carried;
use symbols::{rename_symbols, same_form};
pub use vectors::vector_claim;

use self::ways::{Judgement, Pair, take_back, with_definitions, with_values};
use super::assume::{self, AssumeFault, Assumption};
use super::executed::{self, Before, Order, Runs};
use super::findings::{LoopMap, Tried, Validity, Way, loop_maps};

/// A map that the user gave for a buffer with `--map`.
#[derive(Clone, Debug)]
pub struct GivenMap {
    /// Name of the buffer in the function before.
    pub buffer: String,
    /// The lambda.
    pub text: String,
}

/// The reason why two functions cannot be paired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairFault {
    /// A problem in the text of the function after.
    After(Diagnostic),
    /// A problem in the text of the map at this position of the list.
    Map(usize, Diagnostic),
    /// A problem in the text of an assumed condition, and that text.
    Assumed(String, Diagnostic),
}

impl PairFault {
    fn of_assumption(fault: AssumeFault) -> Vec<Self> {
        let AssumeFault { text, faults } = fault;
        faults.into_iter().map(|found| Self::Assumed(text.clone(), found)).collect()
    }

    /// Returns the diagnostic, without the information which text it is about.
    pub fn diagnostic(self) -> Diagnostic {
        match self {
            Self::After(diagnostic) | Self::Map(_, diagnostic) | Self::Assumed(_, diagnostic) => diagnostic,
        }
    }
}

/// What is decided about a pair of functions.
#[derive(Clone, Debug)]
pub struct Judged {
    /// One report for each obligation.
    pub reports: Vec<Report>,
    /// What all of them take for granted.
    pub premises: Vec<Premise>,
    /// The claims about buffers, given or inferred.
    pub claims: Vec<BufferClaim>,
    /// The claims about iterations.
    pub loops: Vec<LoopMap>,
    /// How the pair was proved or refuted; `None` if it was neither, or if the claims about buffers alone refute it.
    pub way: Option<Way>,
    /// If it is neither proved nor refuted: each way, and why it did not decide the pair.
    pub tried: Vec<Tried>,
    /// The calls that a proof is about.
    pub validity: Validity,
    /// Warnings about local buffers of the function after that have no counterpart, so that only results were compared. Places
    /// are in its text.
    pub unpaired: Vec<Diagnostic>,
}

/// Decides whether the function after means what the function before means: pairs them, asks the judge, and runs both if the
/// judge leaves it open.
///
/// # Errors
/// Those of [`pair`].
pub fn validate(
    before: &PrimFunc,
    after: &PrimFunc,
    maps: &[GivenMap],
    judge: &Judge,
) -> Result<Judged, Vec<PairFault>> {
    validate_given(before, after, Given { maps, ..Given::default() }, judge)
}

/// What a comparison of two functions takes from the user.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// How the indices of buffers moved.
    pub maps: &'a [GivenMap],
    /// Conditions on the integers of the function before, which the caller of both functions guarantees.
    pub assumed: &'a [Assumption],
    /// Whether reductions of floats may be taken in another order.
    pub reassociate: bool,
}

/// [`validate`] under conditions on the integers of the function before, which the caller of both functions guarantees.
///
/// # Errors
/// Those of [`pair`], and a condition that has no value for some integers.
pub fn validate_assuming(
    before: &PrimFunc,
    after: &PrimFunc,
    (maps, assumed): (&[GivenMap], &[Assumption]),
    judge: &Judge,
) -> Result<Judged, Vec<PairFault>> {
    validate_given(before, after, Given { maps, assumed, reassociate: false }, judge)
}

/// [`validate`] with all that the user may state.
///
/// # Errors
/// Those of [`validate_assuming`].
pub fn validate_given(
    before: &PrimFunc,
    after: &PrimFunc,
    Given { maps, assumed, reassociate }: Given<'_>,
    judge: &Judge,
) -> Result<Judged, Vec<PairFault>> {
    let (before, after, maps) = vectors::as_elements(before, after, maps);
    let (before, after, maps) = (&before, &after, maps.as_slice());
    // What the function before assumes, the caller of both guarantees. What only the function after assumes has to follow from it.
    let own = assume::of_function(before);
    let has_values = own.is_empty() || assume::have_values(judge, before, &own).is_ok();
    let assumed: &[Assumption] = &if has_values { [assumed, &own].concat() } else { assumed.to_vec() };
    let Related { after, evidence, unpaired, is_whole } = relate(before, after, maps)?;
    assume::have_values(judge, before, assumed).map_err(PairFault::of_assumption)?;
    let (before, after) = (&assume::asserted(before, assumed), assume::asserted(&after, assumed));
    let judge = &judge.taking_over();
    let scalar = vectors::without(before, &after, maps, judge);
    let grouped = &grouped::without(before, &after, maps, judge);
    let scalar = scalar.as_ref();
    let pair = Pair { before, after: &after, evidence: &evidence, is_whole, reassociate, scalar, grouped };
    let Judgement { evidence: found, mut reports, mut tried, models } = pair.judged(judge);
    let how = if reassociate { Order::Any } else { Order::Same };
    let runs = executed::refute_in(how, Before::Func(before), &after, Some(&evidence), (&mut reports, &models));
    if runs != Runs::Differ {
        take_back(judge, before, &after, &mut reports);
    }
    let is_proved = !reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved());
    let is_refuted = reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_)));
    let way = if runs == Runs::Differ { Some(Way::Run) } else { is_proved.then(|| Way::of(&found.comparison)) };
    tried.push(Tried { way: Way::Run, why: runs.to_string() });
    tried.retain(|_| !is_proved && !is_refuted);
    let loops = loop_maps(before, &after, &found.comparison);
    let mut premises = Premise::of_call(before);
    premises.extend(Premise::of_call(&after));
    premises.extend([before, &after].into_iter().filter_map(Premise::of_implicit_barriers));
    premises.extend([before, &after].into_iter().filter_map(Premise::of_launches));
    premises.extend(Premise::of_pass(&found));
    premises.extend(Premise::of_reports(&reports));
    premises.extend(Premise::of_padding(before, &evidence));
    premises.extend(assume::premises(assumed));
    let warning = |error: Diagnostic| Diagnostic {
        severity: Severity::Warning,
        help: Some("only the values that both programs leave were compared, and not what is inside".into()),
        ..error
    };
    let unpaired = unpaired.into_iter().map(warning).collect();
    let (premises, claims, validity) = (Premise::joined(&premises), vectors::claims(found), Validity::of(before));
    Ok(Judged { reports, premises, claims, loops, way, tried, validity, unpaired })
}

/// Returns the function after, in terms of the symbolic extents of the function before, and the claim of where the values of both come
/// from. `None` if they cannot be compared like that.
pub fn value_claim(before: &PrimFunc, after: &PrimFunc) -> Option<(PrimFunc, Evidence)> {
    let Related { after, evidence, .. } = relate(before, after, &[]).ok()?;
    let evidence = with_values(before, &after, &evidence).ok()?;
    Some((after, evidence))
}

/// Returns the function after, in terms of the symbolic extents of the function before, and the claim of what both compute. `None` if
/// one of them is not lifted, or no reason is found why their definitions are equal.
pub fn definitions_claim(before: &PrimFunc, after: &PrimFunc, reassociate: bool) -> Option<(PrimFunc, Evidence)> {
    let Related { after, evidence, .. } = relate(before, after, &[]).ok()?;
    let evidence = with_definitions(before, &after, &evidence, reassociate).ok()?;
    Some((after, evidence))
}

/// Two functions and what is claimed of them.
struct Related {
    /// The function after, in terms of the symbolic extents of the function before.
    after: PrimFunc,
    evidence: Evidence,
    /// The errors about local buffers of the function after that have no counterpart.
    unpaired: Vec<Diagnostic>,
    /// Whether all buffers have counterparts.
    is_whole: bool,
}

/// Returns the function after, in terms of the symbolic extents of the function before, and the claim that relates the two.
///
/// # Errors
/// A buffer has no counterpart, a map cannot be inferred or does not fit, or a `--map` names no buffer.
pub fn pair(before: &PrimFunc, after: &PrimFunc, maps: &[GivenMap]) -> Result<(PrimFunc, Evidence), Vec<PairFault>> {
    let Related { after, evidence, unpaired, .. } = relate(before, after, maps)?;
    if unpaired.is_empty() {
        return Ok((after, evidence));
    }
    Err(unpaired.into_iter().map(PairFault::After).collect())
}

/// Relates the buffers of two functions.
fn relate(before: &PrimFunc, after: &PrimFunc, maps: &[GivenMap]) -> Result<Related, Vec<PairFault>> {
    let after = rename_symbols(before, after);
    let mut evidence = Evidence { pass: "validate".into(), buffers: Vec::new(), ..Evidence::default() };
    let (mut faults, mut unpaired, mut other_lanes) = (Vec::new(), Vec::new(), false);
    let candidates = before.buffers();
    let is_param = |buffer: &Buffer| after.buffer_map.iter().any(|(_, param)| param == buffer);
    let is_given = |old: &Buffer| maps.iter().any(|given| given.buffer == old.name);
    let unknown = |given: &GivenMap| !candidates.iter().any(|buffer| buffer.name == given.buffer);
    for (position, given) in maps.iter().enumerate().filter(|(_, given)| unknown(given)) {
        let message = format!("--map names `{}`, which is no buffer of `{}`", given.buffer, before.name);
        let names: Vec<_> = candidates.iter().map(|buffer| buffer.name.as_str()).collect();
        // Every name of one letter is near every other.
        let near = tilewright_script::nearest(&given.buffer, names.iter().copied());
        let help = match near.filter(|near| near.len() > 2) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("its buffers are {}", names.join(", ")),
        };
        faults.push(PairFault::Map(position, Diagnostic::error("unknown-buffer", None, message).with_help(help)));
    }
    for buffer in after.buffers().into_iter().filter(|buffer| !candidates.contains(buffer)) {
        let found = counterpart(before, &after, &buffer, &candidates, &evidence);
        let Some(old) = found.or_else(|| same_local(before, &after, &buffer, &evidence)) else {
            let message = format!("buffer `{buffer}` of the function after has no counterpart before");
            let fault = Diagnostic::error("unpaired-buffer", buffer.span, message)
                .with_help("parameters correspond by position, other buffers by name");
            if is_param(&buffer) {
                faults.push(PairFault::After(fault));
            } else {
                unpaired.push(fault);
            }
            continue;
        };
        // Vectors and elements correspond where both programs are without vectors.
        if old.dtype.lanes != buffer.dtype.lanes && !is_param(&buffer) {
            other_lanes = true;
            continue;
        }
        if !is_given(&old) {
            evidence.guessed.push(buffer.clone());
        }
        match claim(&old, &buffer, maps) {
            Ok(claim) => evidence.buffers.push(claim),
            // A buffer inside of which nothing is said need not correspond.
            Err(mut found) if !is_param(&buffer) && !is_given(&old) => {
                unpaired.extend(found.drain(..).map(PairFault::diagnostic));
            }
            Err(found) => faults.extend(found),
        }
    }
    let is_whole = unpaired.is_empty() && !other_lanes;
    if faults.is_empty() { Ok(Related { after, evidence, unpaired, is_whole }) } else { Err(faults) }
}

/// Returns the buffer before that corresponds to a buffer after: the one of the parameter at the same position, else the
/// one on the same memory, else the one with the same name.
fn counterpart(
    before: &PrimFunc,
    after: &PrimFunc,
    buffer: &Buffer,
    candidates: &[Buffer],
    so_far: &Evidence,
) -> Option<Buffer> {
    let position = after.params.iter().position(|param| after.param_buffer(param) == Some(buffer));
    if let Some(position) = position {
        return before.params.get(position).and_then(|param| before.param_buffer(param)).cloned();
    }
    // Of several buffers with one name, each is that of one buffer: the first with the first, and so on.
    let is_free = |candidate: &Buffer| so_far.buffers.iter().all(|claim| claim.before != *candidate);
    let named = candidates.iter().find(|candidate| candidate.name == buffer.name && is_free(candidate));
    let on_same_memory = || so_far.buffers.iter().find(|claim| claim.after.aliases(buffer)).map(|claim| &claim.before);
    let of_same_param = || before.buffer_map.iter().map(|(_, param)| param).find(|param| param.aliases(buffer));
    named.or_else(on_same_memory).or_else(of_same_param).cloned()
}

/// Returns the first local buffer before with the form of a local buffer after that no other buffer after is: it has another name.
fn same_local(before: &PrimFunc, after: &PrimFunc, buffer: &Buffer, so_far: &Evidence) -> Option<Buffer> {
    let is_local = |func: &PrimFunc, buffer: &Buffer| !func.buffer_map.iter().any(|(_, param)| param.aliases(buffer));
    let names = after.buffers();
    let is_free = |old: &Buffer| {
        let is_claimed = so_far.buffers.iter().any(|claim| claim.before == *old);
        !is_claimed && names.iter().all(|other| other.name != old.name)
    };
    let candidates = before.buffers().into_iter().filter(|old| is_local(before, old) && same_form(old, buffer));
    candidates.filter(is_free).find(|_| is_local(after, buffer))
}

/// How the shapes of two buffers differ, in words.
fn difference(before: &Buffer, after: &Buffer) -> String {
    if before.rank() != after.rank() {
        return format!("their ranks are {} and {}", before.rank(), after.rank());
    }
    let text = |buffer: &Buffer| buffer.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (old, new) = (text(before), text(after));
    let types = if old == new { ", with extents of other types" } else { "" };
    format!("their shapes are ({old}) and ({new}){types}")
}

/// Returns the claim about a pair of buffers, with the given map or an inferred one.
fn claim(before: &Buffer, after: &Buffer, maps: &[GivenMap]) -> Result<BufferClaim, Vec<PairFault>> {
    let given = maps.iter().enumerate().find(|(_, given)| given.buffer == before.name);
    let same_shape = before.shape == after.shape;
    let (map, change) = match given {
        // An alias with the old shape beside a moved one is not moved itself; the judge says whether that is right.
        Some((position, given)) => {
            let in_map = |faults: Vec<Diagnostic>| {
                faults.into_iter().map(|fault| PairFault::Map(position, fault)).collect::<Vec<_>>()
            };
            (given_map(given, before).map_err(in_map)?, BufferChange::Layout)
        }
        None if let Some(separators) = becomes_texels(before, after) => {
            (row_major(before, &separators), BufferChange::Texture)
        }
        None if same_shape => (IndexMap::identity(before.shape.clone()), BufferChange::Rename),
        None if after.rank() == before.axis_separators.groups().len()
            && before.axis_separators.rank() == before.rank() =>
        {
            (row_major(before, &before.axis_separators), BufferChange::Flatten)
        }
        None => {
            let message = format!("how `{before}` became `{after}` cannot be inferred: {}", difference(before, after));
            let help = format!("say it: --map '{before}: lambda ...: [...]'");
            return Err(vec![PairFault::After(Diagnostic::error("no-map", after.span, message).with_help(help))]);
        }
    };
    if map.outputs().len() != after.rank() {
        let message = format!(
            "the map of `{before}` has {} outputs, but `{after}` has {} axes",
            map.outputs().len(),
            after.rank()
        );
        let fault = |span| Diagnostic::error("map-rank", span, message);
        return Err(vec![match given {
            Some((position, _)) => PairFault::Map(position, fault(None)),
            None => PairFault::After(fault(after.span)),
        }]);
    }
    let padded_axes = padded_axes(&map, after);
    Ok(BufferClaim { before: before.clone(), after: after.clone(), map, change, padded_axes })
}

/// Reads a map that the user gave, as a format name or as a lambda, in terms of the symbolic extents of the buffer.
fn given_map(given: &GivenMap, before: &Buffer) -> Result<IndexMap, Vec<Diagnostic>> {
    if let Some(named) = crate::formats::read(&given.text, &before.shape) {
        return named.map(|named| named.map);
    }
    let mut symbols = Symbols::default();
    let map = read_index_map(&given.text, Some(&before.shape), &mut symbols)?;
    // The reader makes its own variables for symbolic extents; they mean those of the shape.
    let known: Vec<Var> = before.shape.iter().flat_map(Expr::vars).collect();
    let mut renaming = Substitution::default();
    for symbol in symbols.vars() {
        let Some(extent) = known.iter().find(|extent| extent.name() == symbol.name()) else {
            let message = format!("`{symbol}` is neither an index of the map nor an extent of `{before}`");
            return Err(vec![Diagnostic::error("unknown-name", None, message)]);
        };
        renaming.insert(symbol, Expr::from(extent));
    }
    let outputs = map.outputs().iter().map(|output| renaming.apply(output)).collect();
    let positions = map.axis_separators().positions().to_vec();
    IndexMap::new(map.vars().to_vec(), before.shape.clone(), outputs, positions)
        .map_err(|error| vec![Diagnostic::error("index-map", None, error.to_string())])
}

/// Returns the separators at which a texture was cut into rows, columns and channels; `None` if it was changed otherwise.
fn becomes_texels(before: &Buffer, after: &Buffer) -> Option<AxisSeparators> {
    (!before.is_texel_buffer() && after.is_texel_buffer()).then(|| before.texture_separators().ok()).flatten()
}

/// Returns the map that linearizes each group of axes in row-major order.
fn row_major(buffer: &Buffer, separators: &AxisSeparators) -> IndexMap {
    let identity = IndexMap::identity(buffer.shape.clone());
    let index: Vec<Expr> = identity.vars().iter().map(Expr::from).collect();
    let groups = separators.groups();
    let numeral = |group: std::ops::Range<usize>| {
        let digits = group.map(|axis| (index[axis].clone(), buffer.shape[axis].clone()));
        digits
            .reduce(|(high, _), (low, extent)| (high * extent.clone() + low, extent))
            .map_or_else(|| Expr::int(0), |(numeral, _)| numeral)
    };
    let outputs = groups.into_iter().map(numeral).collect();
    IndexMap::new(identity.vars().to_vec(), buffer.shape.clone(), outputs, Vec::new())
        .unwrap_or_else(|error| unreachable!("numerals of indices are integers: {error}"))
}

/// Returns the axes of `after` that are longer than the map needs; their remainder is intended padding. So is that of an axis of
/// digits, as the last tile of a symbolic extent may be ragged.
fn padded_axes(map: &IndexMap, after: &Buffer) -> Vec<usize> {
    let Ok(needed) = tilewright_algebra::physical_shape(map, &[]) else { return Vec::new() };
    let is_symbolic = map.domain().iter().any(|extent| extent.as_const_int().is_none());
    let longer = |axis: &usize| match (after.shape[*axis].as_const_int(), needed.extents[*axis].as_const_int()) {
        (Some(stated), Some(needed)) => stated > needed,
        _ => needed.padded_axes.contains(axis),
    };
    let is_ragged = |axis: &usize| is_symbolic && has_digits(&map.outputs()[*axis]);
    (0..after.rank()).filter(|axis| is_ragged(axis) || longer(axis)).collect()
}

/// Whether an index is made of quotients or remainders.
fn has_digits(index: &Expr) -> bool {
    let mut found = false;
    index.walk(&mut |part| found |= matches!(part, Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, ..)));
    found
}
