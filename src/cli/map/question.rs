//! The question about a map: texts that were read, and checked to fit together.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Diagnostic, Expr, IndexMap, Span, Var};
use tilewright_script::{Source, Symbols, read_condition, read_index_map, read_predicate, read_shape, span_of_name};

use super::super::failure::Failure;
use super::super::point::{Point, span};
use crate::formats;

/// Most axes of a shape, logical or physical.
const MAX_RANK: usize = 256;
/// Names that results use as functions, and that extents therefore may not have.
pub(super) const FUNCTIONS: [&str; 4] = ["min", "max", "abs", "if_then_else"];

/// The texts of a request. The name of each source is that of its option, for messages.
#[derive(Clone, Debug)]
pub(in super::super) struct Texts {
    pub(in super::super) map: Source,
    pub(in super::super) shape: Source,
    pub(in super::super) at: Vec<Source>,
    pub(in super::super) inverse: Option<Source>,
    pub(in super::super) padding: Option<Source>,
    pub(in super::super) assume: Vec<Source>,
    pub(in super::super) physical_shape: Option<Source>,
    pub(in super::super) spec: Option<Source>,
    pub(in super::super) predicate: Option<Source>,
    pub(in super::super) parts: bool,
    pub(in super::super) inner: Option<Source>,
}

/// A map on a shape, and everything that was stated about it. All parts fit together.
#[derive(Debug)]
pub(in super::super) struct Question {
    pub(super) source: Source,
    pub(super) map: IndexMap,
    /// The stated physical shape, with an extent for each output.
    pub(super) physical_shape: Option<Vec<Expr>>,
    pub(super) assumptions: Vec<Expr>,
    pub(super) points: Vec<Point>,
    pub(super) meaning: Option<IndexMap>,
    /// The predicate that restricts the domain, in the parameters of the map.
    pub(super) predicate: Option<Expr>,
    /// The text of the predicate.
    pub(super) predicate_text: Option<Source>,
    /// Whether the parts of each output are asked for.
    pub(super) parts: bool,
    /// The inner indices of a division of the map, with their text.
    pub(super) inner: Option<(Source, Vec<Var>)>,
    inverse: Option<Source>,
    padding: Option<Source>,
    symbols: Symbols,
}

impl Question {
    /// Reads everything but the inverse and the padding. Those are read later, because their domain is the physical
    /// shape.
    ///
    /// # Errors
    /// A text cannot be read, a name is introduced nowhere, or parts do not fit together.
    pub(in super::super) fn read(texts: Texts) -> Result<Self, Failure> {
        let mut symbols = Symbols::default();
        let shape = extents(&texts.shape, &mut symbols)?;
        let condition = |text: &Source, symbols: &mut Symbols| {
            read_condition(&text.text, symbols).map_err(|faults| Failure::input(text, faults))
        };
        let assumptions: Vec<Expr> =
            texts.assume.iter().map(|text| condition(text, &mut symbols)).collect::<Result<_, _>>()?;
        let declared = symbols.vars().len();
        let physical_shape = texts.physical_shape.as_ref().map(|text| extents(text, &mut symbols)).transpose()?;
        if let Some(text) = &texts.physical_shape {
            only_known(text, &symbols, declared)?;
        }
        if let Some(symbol) = symbols.vars().iter().find(|symbol| FUNCTIONS.contains(&symbol.name())) {
            let message = format!("`{symbol}` is a function here and no extent");
            return Err(fault(&texts.shape, "reserved-name", message, "give the extent another name"));
        }
        let format = formats::read(&texts.map.text, &shape).transpose();
        let format = format.map_err(|faults| Failure::input(&texts.map, faults))?;
        let map = match &format {
            Some(format) => Ok(format.map.clone()),
            None => read_index_map(&texts.map.text, Some(&shape), &mut symbols),
        };
        let map = map.map_err(|faults| Failure::input(&texts.map, faults))?;
        only_known(&texts.map, &symbols, declared)?;
        let (outputs, most) = (map.outputs().len(), MAX_RANK);
        if outputs > most {
            let message = format!("the map has {outputs} outputs, more than {most}");
            return Err(fault(&texts.map, "rank", message, "give fewer"));
        }
        let used: Vec<Var> = map.outputs().iter().flat_map(Expr::vars).collect();
        let named = |symbol: &Var| shape.iter().any(|extent| extent.vars().contains(symbol)) || used.contains(symbol);
        for (text, assumption) in texts.assume.iter().zip(&assumptions) {
            if let Some(symbol) = assumption.vars().iter().find(|symbol| !named(symbol)) {
                return Err(unknown_name(text, symbol, "neither in the shape nor in the map"));
            }
        }
        if let (Some(text), Some(physical)) = (&texts.physical_shape, &physical_shape)
            && physical.len() != outputs
        {
            let message = format!("the physical shape has {} axes, the map {outputs} outputs", physical.len());
            return Err(fault(text, "rank", message, "give one extent for each output"));
        }
        let meaning = texts.spec.as_ref().map(|text| meaning(text, &map, &mut symbols)).transpose()?;
        // A named format comes with a meaning and with a physical shape of whole blocks; stated ones take precedence.
        let (physical_shape, meaning) = match format {
            Some(format) => (physical_shape.or(Some(format.shape)), meaning.or(Some(format.meaning))),
            None => (physical_shape, meaning),
        };
        let predicate = texts.predicate.as_ref().map(|text| predicate(text, &map, &symbols)).transpose()?;
        let inner = texts.inner.map(|text| Ok((inner(&text, &map)?, text))).transpose()?;
        let inner = inner.map(|(vars, text)| (text, vars));
        let point = |text| read_point(text, &map, predicate.as_ref());
        let points = texts.at.into_iter().map(point).collect::<Result<_, _>>()?;
        Ok(Self {
            source: texts.map,
            map,
            physical_shape,
            assumptions,
            points,
            meaning,
            predicate,
            predicate_text: texts.predicate,
            parts: texts.parts,
            inner,
            inverse: texts.inverse,
            padding: texts.padding,
            symbols,
        })
    }

    /// The map on its shape.
    pub(in super::super) fn map(&self) -> &IndexMap {
        &self.map
    }

    /// The inverse that the user stated, with the physical shape as its domain.
    pub(super) fn inverse(&self, physical: &[Expr]) -> Result<Option<IndexMap>, Failure> {
        let Some(text) = &self.inverse else { return Ok(None) };
        let mut symbols = self.symbols.clone();
        let known = symbols.vars().len();
        let inverse = read_index_map(&text.text, Some(physical), &mut symbols);
        let inverse = inverse.map_err(|faults| Failure::input(text, faults))?;
        only_known(text, &symbols, known)?;
        let (from, to) = (inverse.outputs().len(), self.map.vars().len());
        if from != to {
            let message = format!("the inverse gives {from} indices, the map takes {to}");
            return Err(fault(text, "rank", message, "give one output for each index of the map, in their order"));
        }
        if !inverse.axis_separators().is_empty() {
            let message = "an inverse has no separators: logical indices are not flattened";
            return Err(fault(text, "separators", message, "leave AXIS_SEPARATOR out"));
        }
        Ok(Some(inverse))
    }

    /// The padding that the user stated: the physical indices, and the predicate on them.
    pub(super) fn padding(&self, physical: &[Expr]) -> Result<Option<(Vec<Var>, Expr)>, Failure> {
        let Some(text) = &self.padding else { return Ok(None) };
        let mut symbols = self.symbols.clone();
        let known = symbols.vars().len();
        let padding = read_predicate(&text.text, physical, &mut symbols);
        let padding = padding.map_err(|faults| Failure::input(text, faults))?;
        only_known(text, &symbols, known)?;
        Ok(Some(padding))
    }
}

/// Reads a shape; names become symbols.
fn extents(text: &Source, symbols: &mut Symbols) -> Result<Vec<Expr>, Failure> {
    let shape = read_shape(&text.text, symbols).map_err(|faults| Failure::input(text, faults))?;
    if shape.len() > MAX_RANK {
        let message = format!("the shape has {} axes, more than {MAX_RANK}", shape.len());
        return Err(fault(text, "rank", message, "give fewer"));
    }
    size_fits(&shape).map_err(|message| fault(text, "shape-size", message, "give smaller extents"))?;
    Ok(shape)
}

/// A constant shape has at most 2^63 - 1 elements.
pub(super) fn size_fits(shape: &[Expr]) -> Result<(), String> {
    let extents: Option<Vec<i128>> = shape.iter().map(Expr::as_const_int).collect();
    let size = extents.map_or(Ok(0), |extents| tilewright_ir::checked_size(&extents));
    size.map(drop).map_err(|error| format!("the shape is too large: {error}"))
}

/// Reads the second statement of the map; it has as many outputs, and the same separators or none.
fn meaning(text: &Source, map: &IndexMap, symbols: &mut Symbols) -> Result<IndexMap, Failure> {
    let known = symbols.vars().len();
    let meaning = read_index_map(&text.text, Some(map.domain()), symbols);
    let meaning = meaning.map_err(|faults| Failure::input(text, faults))?;
    only_known(text, symbols, known)?;
    let (stated, outputs) = (meaning.outputs().len(), map.outputs().len());
    if stated != outputs {
        let message = format!("the specification has {stated} outputs, the map {outputs}");
        return Err(fault(text, "rank", message, "state the meaning of each output, in their order"));
    }
    let separators = meaning.axis_separators();
    if !separators.is_empty() && separators != map.axis_separators() {
        let (stated, found) = (separators.positions(), map.axis_separators().positions());
        let message = format!("the specification has separators at {stated:?}, the map at {found:?}");
        return Err(fault(text, "separators", message, "write the same separators, or none"));
    }
    Ok(meaning)
}

/// Reads a predicate on the indices of a map: a lambda, or a condition in the names of the map's parameters.
fn predicate(text: &Source, map: &IndexMap, symbols: &Symbols) -> Result<Expr, Failure> {
    let mut symbols = symbols.clone();
    let known = symbols.vars().len();
    let is_lambda = text.text.trim_start().starts_with("lambda");
    let (vars, predicate) = if is_lambda {
        read_predicate(&text.text, map.domain(), &mut symbols).map_err(|faults| Failure::input(text, faults))?
    } else {
        // Faults are found in the text as it stands; then it becomes the body of a lambda over the map's parameters.
        read_condition(&text.text, &mut symbols.clone()).map_err(|faults| Failure::input(text, faults))?;
        let names: Vec<&str> = map.vars().iter().map(Var::name).collect();
        let lambda = format!("lambda {}: ({})", names.join(", "), text.text);
        read_predicate(&lambda, map.domain(), &mut symbols)
            .map_err(|_| fault(text, "predicate", "the predicate cannot be read", "write it as a lambda"))?
    };
    only_known(text, &symbols, known)?;
    Ok(Substitution::new(&vars, map.vars().iter().map(Expr::from)).apply(&predicate))
}

/// Reads the names of some parameters of a map.
fn inner(text: &Source, map: &IndexMap) -> Result<Vec<Var>, Failure> {
    let mut found: Vec<Var> = Vec::new();
    for name in text.text.split(',').map(str::trim) {
        let Some(var) = map.vars().iter().find(|var| var.name() == name) else {
            let names: Vec<&str> = map.vars().iter().map(Var::name).collect();
            let place = span_of_name(name, &text.text);
            let help = format!("the parameters are {}", names.join(", "));
            let message = format!("`{name}` is no parameter of the map");
            return Err(fault_at(text, place, "unknown-name", message, &help));
        };
        if !found.contains(var) {
            found.push(var.clone());
        }
    }
    Ok(found)
}

/// Names beyond the first `known` are mistakes.
fn only_known(text: &Source, symbols: &Symbols, known: usize) -> Result<(), Failure> {
    let unknown = symbols.vars().get(known..).unwrap_or_default();
    match unknown.first() {
        Some(symbol) => Err(unknown_name(text, symbol, "neither an index nor an extent of the shape")),
        None => Ok(()),
    }
}

/// The failure of a name that is introduced nowhere, at its first place in the text.
fn unknown_name(text: &Source, symbol: &Var, what: &str) -> Failure {
    let place = span_of_name(symbol.name(), &text.text);
    let fault = Diagnostic::error("unknown-name", Some(place), format!("`{symbol}` is {what}"))
        .with_help("indices are the lambda's parameters; extents are named by --shape and --assume");
    Failure::input(text, vec![fault])
}

/// A fault of a whole text.
pub(super) fn fault(text: &Source, code: &'static str, message: impl Into<String>, help: &str) -> Failure {
    fault_at(text, span(0..text.text.len()), code, message, help)
}

/// A fault of a part of a text.
pub(super) fn fault_at(
    text: &Source,
    place: Span,
    code: &'static str,
    message: impl Into<String>,
    help: &str,
) -> Failure {
    Failure::input(text, vec![Diagnostic::error(code, Some(place), message).with_help(help)])
}

/// Reads an index of the map's domain.
fn read_point(source: Source, map: &IndexMap, predicate: Option<&Expr>) -> Result<Point, Failure> {
    let point = Point::read(source)?;
    point.check_rank(map.domain().len(), "the shape")?;
    for (axis, (index, extent)) in point.index.iter().zip(map.domain()).enumerate() {
        let too_large = extent.as_const_int().is_some_and(|extent| *index >= extent);
        if *index < 0 || too_large {
            return Err(point.outside(axis, "the shape", &format!("in 0..{extent}")));
        }
    }
    if let Some(predicate) = predicate {
        let bindings = map.vars().iter().cloned().zip(point.index.iter().copied()).collect();
        if predicate.eval_index(&bindings).is_ok_and(|holds| holds == 0) {
            let message = format!("the predicate `{predicate}` does not hold at {:?}", point.index);
            return Err(fault(&point.source, "outside", message, "give an index for which it holds"));
        }
    }
    Ok(point)
}
