//! Relates two functions for translation validation: finds which buffers correspond, and how their indices moved, and
//! states it as evidence that the judge checks.

use std::collections::HashMap;
use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisSeparators, Buffer, BufferChange, BufferClaim, Diagnostic, Evidence, Expr, IndexMap, PrimFunc, Var,
};
use tilewright_script::{Symbols, read_index_map};
use tilewright_verify::{Judge, Premise, Report};

use super::executed::{self, Before};
use crate::reorder;

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
}

impl PairFault {
    /// Returns the diagnostic, without the information which text it is about.
    pub fn diagnostic(self) -> Diagnostic {
        match self {
            Self::After(diagnostic) | Self::Map(_, diagnostic) => diagnostic,
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
    let Related { after, evidence, strangers } = relate(before, after, maps)?;
    let mut reports = proved(before, &after, &evidence, judge, strangers.is_empty());
    executed::refute(Before::Func(before), &after, Some(&evidence), &mut reports);
    let mut premises = Premise::of_call(before);
    premises.extend(Premise::of_call(&after));
    premises.extend(Premise::of_pass(&evidence));
    Ok(Judged { reports, premises: Premise::joined(&premises), claims: evidence.buffers })
}

/// The reports of the first way that proves the pair: statement by statement, iteration by iteration, by the results alone. If
/// none does, those of the way that leaves the least open. If buffers inside have no counterpart, only the results can be compared.
fn proved(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence, judge: &Judge, is_whole: bool) -> Vec<Report> {
    let open = |reports: &[Report]| reports.iter().filter(|report| !report.verdict.is_proved()).count();
    let reordered = || Some(Evidence { reordering: Some(reorder::find(before, after, evidence)?), ..evidence.clone() });
    let results = || Some(results_only(before, evidence));
    let inside: [&dyn Fn() -> Option<Evidence>; 2] = [&|| Some(evidence.clone()), &reordered];
    let ways = inside.into_iter().filter(|_| is_whole).chain([&results as &dyn Fn() -> Option<Evidence>]);
    let mut best: Option<Vec<Report>> = None;
    for evidence in ways.filter_map(|way| way()) {
        // A failed comparison of results alone says less than one with a place.
        if best.is_some() && evidence.only_results && !is_constant(before) {
            continue;
        }
        let reports = judge.check_pass(before, after, &evidence);
        let left = open(&reports);
        if left == 0 {
            return reports;
        }
        if best.as_ref().is_none_or(|best| left < open(best) && !evidence.only_results) {
            best = Some(reports);
        }
    }
    best.unwrap_or_default()
}

/// The claims about parameters, and that they hold the same in the end.
fn results_only(before: &PrimFunc, evidence: &Evidence) -> Evidence {
    let is_param = |buffer: &Buffer| before.buffer_map.iter().any(|(_, param)| param == buffer);
    let mut evidence = Evidence { only_results: true, ..evidence.clone() };
    evidence.buffers.retain(|claim| is_param(&claim.before));
    evidence
}

/// Whether all parameters have constant shapes.
fn is_constant(func: &PrimFunc) -> bool {
    func.buffer_map.iter().all(|(_, buffer)| buffer.const_shape().is_some())
}

/// Two functions and what is claimed of them.
struct Related {
    /// The function after, in terms of the symbolic extents of the function before.
    after: PrimFunc,
    evidence: Evidence,
    /// What is said of buffers inside the function after that have no counterpart.
    strangers: Vec<Diagnostic>,
}

/// Returns the function after, in terms of the symbolic extents of the function before, and the claim that relates the two.
///
/// # Errors
/// A buffer has no counterpart, a map cannot be inferred or does not fit, or a `--map` names no buffer.
pub fn pair(before: &PrimFunc, after: &PrimFunc, maps: &[GivenMap]) -> Result<(PrimFunc, Evidence), Vec<PairFault>> {
    let Related { after, evidence, strangers } = relate(before, after, maps)?;
    if strangers.is_empty() {
        return Ok((after, evidence));
    }
    Err(strangers.into_iter().map(PairFault::After).collect())
}

/// Relates the buffers of two functions.
fn relate(before: &PrimFunc, after: &PrimFunc, maps: &[GivenMap]) -> Result<Related, Vec<PairFault>> {
    let after = rename_symbols(before, after);
    let mut evidence = Evidence { pass: "validate".into(), buffers: Vec::new(), ..Evidence::default() };
    let (mut faults, mut strangers) = (Vec::new(), Vec::new());
    let candidates = before.buffers();
    let is_param = |buffer: &Buffer| after.buffer_map.iter().any(|(_, param)| param.aliases(buffer));
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
        let Some(old) = counterpart(before, &after, &buffer, &candidates, &evidence) else {
            let message = format!("buffer `{buffer}` of the function after has no counterpart before");
            let fault = Diagnostic::error("unpaired-buffer", buffer.span, message)
                .with_help("parameters correspond by position, other buffers by name");
            if is_param(&buffer) {
                faults.push(PairFault::After(fault));
            } else {
                strangers.push(fault);
            }
            continue;
        };
        if !is_given(&old) {
            evidence.guessed.push(buffer.clone());
        }
        match claim(&old, &buffer, maps) {
            Ok(claim) => evidence.buffers.push(claim),
            // A buffer inside of which nothing is said need not correspond.
            Err(mut found) if !is_param(&buffer) && !is_given(&old) => {
                strangers.extend(found.drain(..).map(PairFault::diagnostic));
            }
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() { Ok(Related { after, evidence, strangers }) } else { Err(faults) }
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
    let named = candidates.iter().find(|candidate| candidate.name == buffer.name);
    let on_same_memory = || so_far.buffers.iter().find(|claim| claim.after.aliases(buffer)).map(|claim| &claim.before);
    let of_same_param = || before.buffer_map.iter().map(|(_, param)| param).find(|param| param.aliases(buffer));
    named.or_else(on_same_memory).or_else(of_same_param).cloned()
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
            let message = format!(
                "how `{before}` became `{after}` cannot be inferred: their ranks are {} and {}",
                before.rank(),
                after.rank()
            );
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

/// Returns the axes of `after` that are longer than the map needs; their remainder is intended padding.
fn padded_axes(map: &IndexMap, after: &Buffer) -> Vec<usize> {
    let Ok(needed) = tilewright_algebra::physical_shape(map, &[]) else { return Vec::new() };
    let longer = |axis: &usize| match (after.shape[*axis].as_const_int(), needed.extents[*axis].as_const_int()) {
        (Some(stated), Some(needed)) => stated > needed,
        _ => needed.padded_axes.contains(axis),
    };
    (0..after.rank()).filter(longer).collect()
}

/// Returns the function with its integers replaced by those of `before` that they correspond to. Scalar parameters correspond
/// by position, because that is how a caller passes them. A symbol corresponds to the one with the same name, or else to the
/// one that stands at the same place of a parameter's shape. What has no counterpart keeps its own variable.
fn rename_symbols(before: &PrimFunc, after: &PrimFunc) -> PrimFunc {
    let mut renaming = Renaming { vars: Substitution::default(), buffers: HashMap::new() };
    for (new, old) in corresponding_integers(before, after) {
        renaming.vars.insert(&new, Expr::from(&old));
    }
    let used = PrimFunc { buffer_map: Vec::new(), ..after.clone() }.buffers();
    for (old, new) in before.params.iter().zip(&after.params) {
        if let (Some(old), Some(new)) = (before.param_buffer(old), after.param_buffer(new)) {
            // The body may use only an alias of a parameter; the parameter itself then corresponds if it has the same form.
            let aliased = !used.contains(new) && used.iter().any(|buffer| buffer.aliases(new));
            let Ok(renamed) = renaming.buffer(new);
            if aliased && same_form(old, &renamed) && !has_layout(after, new) {
                renaming.vars.insert(&new.data, Expr::from(&old.data));
                renaming.buffers.insert(new.clone(), old.clone());
            }
        }
    }
    let mut func = after.clone();
    let vars = renaming.vars.clone();
    let rename_param = |param: &Var| match vars.get(param) {
        Some(Expr::Var(old)) => old.clone(),
        _ => param.clone(),
    };
    func.params = after.params.iter().map(rename_param).collect();
    for (_, buffer) in &mut func.buffer_map {
        let Ok(renamed) = renaming.buffer(buffer);
        *buffer = renamed;
    }
    func.attrs.extents = after.attrs.extents.iter().map(rename_param).collect();
    for map in func.attrs.layout_transform_map.iter_mut().flat_map(|(_, maps)| maps) {
        let renamed = |exprs: &[Expr]| exprs.iter().map(|expr| vars.apply(expr)).collect();
        let separators = map.axis_separators().positions().to_vec();
        // Renaming keeps a map valid.
        if let Ok(new) = IndexMap::new(map.vars().to_vec(), renamed(map.domain()), renamed(map.outputs()), separators) {
            *map = new;
        }
    }
    let Ok(body) = renaming.stmt(&after.body);
    func.body = body;
    func
}

/// Returns the pairs of corresponding integers, the one of `after` first. The correspondence is one to one.
fn corresponding_integers(before: &PrimFunc, after: &PrimFunc) -> Vec<(Var, Var)> {
    let mut found: Vec<(Var, Var)> = Vec::new();
    let mut add = |new: &Var, old: &Var| {
        let is_free = !found.iter().any(|(known, image)| known == new || image == old);
        if is_free && new.dtype() == old.dtype() {
            found.push((new.clone(), old.clone()));
        }
    };
    let positions = || before.params.iter().zip(&after.params);
    for (old, new) in positions() {
        if before.param_buffer(old).is_none() && after.param_buffer(new).is_none() {
            add(new, old);
        }
    }
    let (known, symbols) = (before.symbols(), after.symbols());
    for (new, old) in symbols.iter().flat_map(|new| known.iter().map(move |old| (new, old))) {
        // A parameter corresponds by its position alone.
        let is_param = before.params.contains(old) || after.params.contains(new);
        if new.name() == old.name() && !is_param {
            add(new, old);
        }
    }
    for (old, new) in positions() {
        let (Some(old), Some(new)) = (before.param_buffer(old), after.param_buffer(new)) else { continue };
        for extents in old.shape.iter().zip(&new.shape).filter(|_| old.rank() == new.rank()) {
            if let (Expr::Var(old), Expr::Var(new)) = extents {
                add(new, old);
            }
        }
    }
    found
}

/// Returns whether the function requests a layout for a buffer.
fn has_layout(func: &PrimFunc, buffer: &Buffer) -> bool {
    func.attrs.tile_layout.iter().any(|(data, _)| *data == buffer.data)
        || func.attrs.layout_transform_map.iter().any(|(data, _)| *data == buffer.data)
}

/// Returns whether two buffers are equal except for their names.
fn same_form(a: &Buffer, b: &Buffer) -> bool {
    (a.dtype, &a.shape, &a.strides, &a.elem_offset, &a.axis_separators, a.scope)
        == (b.dtype, &b.shape, &b.strides, &b.elem_offset, &b.axis_separators, b.scope)
}

/// Replaces variables, in the shapes of buffers too.
struct Renaming {
    vars: Substitution,
    buffers: HashMap<Buffer, Buffer>,
}

impl Rewrite for Renaming {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.vars.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        if let Some(renamed) = self.buffers.get(buffer) {
            return Ok(renamed.clone());
        }
        let vars = &self.vars;
        let renamed = buffer.with(|info| {
            let all = info.shape.iter_mut().chain(info.strides.iter_mut().flatten());
            for expr in all.chain(std::iter::once(&mut info.elem_offset)) {
                *expr = vars.apply(expr);
            }
            if let Some(Expr::Var(data)) = vars.get(&info.data) {
                info.data = data.clone();
            }
        });
        self.buffers.insert(buffer.clone(), renamed.clone());
        Ok(renamed)
    }
}
