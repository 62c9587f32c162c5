//! From text to layouts, with the place of every part.

use tilewright_ir::Span;
use tilewright_ir::layout::{DimAttribute, DimLevel, Layout, Place, SplitConfig, Tile, TileDim};

use super::lexer::{Token, Word};
use super::read::{Read, Reader};

/// Where the parts of an array shape stand.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) whole: Option<Span>,
    dimensions: Option<Span>,
    /// All of the layout, with its braces.
    layout: Option<Span>,
    minor_to_major: Vec<Span>,
    attributes: Vec<Span>,
    /// Each tile, and the dimensions of each.
    tiles: Vec<(Span, Vec<Span>)>,
    splits: Vec<(Span, Vec<Span>)>,
    /// Properties by their letter.
    properties: Vec<(&'static str, Span)>,
}

impl Places {
    /// Nothing is known but where the extents stand.
    pub(super) fn with_dimensions(dimensions: Span) -> Self {
        Self { dimensions: Some(dimensions), ..Self::default() }
    }

    /// Where a part stands; the whole of what holds it if it has no place of its own.
    pub(super) fn of(&self, place: Place) -> Option<Span> {
        let property = |letter: &str| self.properties.iter().find(|(name, _)| *name == letter).map(|(_, span)| *span);
        let nested = |list: &[(Span, Vec<Span>)], index: usize, inner: Option<usize>| {
            let (outer, parts) = list.get(index)?;
            Some(inner.and_then(|inner| parts.get(inner).copied()).unwrap_or(*outer))
        };
        let found = match place {
            Place::Whole => None,
            Place::Dimensions => self.dimensions,
            Place::MinorToMajor(Some(position)) => self.minor_to_major.get(position).copied(),
            Place::MinorToMajor(None) => match (self.minor_to_major.first(), self.minor_to_major.last()) {
                (Some(first), Some(last)) => Some(Span::new(first.start, last.end)),
                _ => self.layout,
            },
            Place::DimAttributes(position) => {
                position.and_then(|position| self.attributes.get(position).copied()).or_else(|| property("D"))
            }
            Place::Tile(tile, dim) => nested(&self.tiles, tile, dim),
            Place::TailAlignment => property("L"),
            Place::IndexType => property("#"),
            Place::PointerType => property("*"),
            Place::ElementBits => property("E"),
            Place::SplitConfig(config, index) => nested(&self.splits, config, index),
            Place::PhysicalShape => property("P"),
        };
        found.or(self.whole)
    }
}

/// The properties in the order in which XLA writes and reads them.
const ORDER: [&str; 10] = ["D", "T", "L", "#", "*", "E", "S", "SC", "P", "M"];

const PROPERTIES: &str = "the properties are D, T, L, #, *, E, S, SC, P, M, in this order";

impl Reader<'_> {
    /// `{1,0:T(2,2)}`.
    pub(super) fn layout(&mut self, places: &mut Places) -> Read<Layout> {
        let opened = self.next();
        let mut order = Vec::new();
        if matches!(self.peek().word, Word::Int(_)) {
            loop {
                places.minor_to_major.push(self.peek().span);
                let dimension = self.number("a dimension", "dimensions are numbered from 0")?;
                order.push(usize::try_from(dimension).unwrap_or(usize::MAX));
                if self.eat(",").is_none() {
                    break;
                }
            }
        }
        let mut layout = Layout::new(order);
        if let Some(colon) = self.eat(":") {
            self.properties(&mut layout, places, colon)?;
        }
        let help = if layout.minor_to_major.is_empty() {
            "a layout is such as {1,0:T(8,128)}: dimensions, then after `:` its properties"
        } else {
            "a layout ends with `}`; its properties stand after a `:`"
        };
        let found = self.peek();
        let closed = self.eat("}").ok_or_else(|| {
            let message = format!("expected `}}`, found {}", found.described());
            found.error("unclosed", message, help).with_label(opened.span, "opened here")
        })?;
        places.layout = Some(Span::new(opened.span.start, closed.span.end));
        Ok(layout)
    }

    fn properties(&mut self, layout: &mut Layout, places: &mut Places, colon: Token<'_>) -> Read<()> {
        let mut last: Option<usize> = None;
        loop {
            let token = self.peek();
            let text = match token.word {
                Word::Name(text) => text,
                Word::Sign(sign @ ("#" | "*")) => sign,
                _ if last.is_none() => return Err(colon.error("property", "no property follows `:`", PROPERTIES)),
                _ => return Ok(()),
            };
            let Some(position) = ORDER.iter().position(|letter| *letter == text) else {
                return Err(token.error("property", format!("`{text}` is no property of a layout"), PROPERTIES));
            };
            if let Some(before) = last.filter(|last| position <= *last).and_then(|last| ORDER.get(last)) {
                let message = if *before == text {
                    format!("property `{text}` appears twice")
                } else {
                    format!("property `{text}` stands after `{before}`")
                };
                return Err(token.error("property-order", message, PROPERTIES));
            }
            last = Some(position);
            self.next();
            let letter = ORDER[position];
            self.property(letter, layout, places)?;
            let end = self.last_end();
            places.properties.push((letter, Span::new(token.span.start, end)));
        }
    }

    fn property(&mut self, letter: &str, layout: &mut Layout, places: &mut Places) -> Read<()> {
        match letter {
            "D" => layout.dim_attributes = self.attributes(places)?,
            "T" => layout.tiles = self.tiles(places)?,
            "L" => layout.tail_alignment = self.in_brackets("an alignment")?,
            "#" | "*" => {
                let opened = self.expect("(", "write such as #(u32)")?;
                let ty = self.element_type()?;
                self.close(")", opened)?;
                *(if letter == "#" { &mut layout.index_type } else { &mut layout.pointer_type }) = Some(ty);
            }
            "E" => layout.element_bits = self.in_brackets("a number of bits")?,
            "S" => layout.memory_space = self.in_brackets("a memory space")?,
            "SC" => layout.split_configs = self.splits(places)?,
            "P" => {
                let opened = self.expect("(", "write the shape in parentheses")?;
                layout.physical_shape = Some(Box::new(self.shape()?));
                self.close(")", opened)?;
            }
            _ => layout.metadata_prefix_bytes = self.in_brackets("a number of bytes")?,
        }
        Ok(())
    }

    fn in_brackets(&mut self, what: &str) -> Read<u64> {
        let opened = self.expect("(", "the value stands in parentheses, such as L(8)")?;
        let value = self.number(what, "the value is one number from 0")?;
        self.close(")", opened)?;
        Ok(value)
    }

    fn attributes(&mut self, places: &mut Places) -> Read<Vec<DimAttribute>> {
        let opened = self.expect("(", "write such as D(D,C)")?;
        let mut attributes = Vec::new();
        loop {
            let token = self.next();
            let level = match token.word {
                Word::Name("D") => DimLevel::Dense,
                Word::Name("C") => DimLevel::Compressed,
                Word::Name("S") => DimLevel::Singleton,
                Word::Name("H") => DimLevel::LooseCompressed,
                _ => {
                    let message = format!("{} is no kind of dimension", token.described());
                    let help = "a dimension is D (dense), C (compressed), S (singleton) or H (loose compressed)";
                    return Err(token.error("attribute", message, help));
                }
            };
            let unique = self.eat("+").is_none();
            let ordered = self.eat("~").is_none();
            attributes.push(DimAttribute { level, unique, ordered });
            places.attributes.push(Span::new(token.span.start, self.last_end()));
            if self.eat(",").is_none() {
                break;
            }
        }
        self.close(")", opened)?;
        Ok(attributes)
    }

    fn tiles(&mut self, places: &mut Places) -> Read<Vec<Tile>> {
        let mut tiles = Vec::new();
        let mut opened = self.expect("(", "a tile stands in parentheses, such as T(8,128)")?;
        loop {
            let (mut dims, mut spans) = (Vec::new(), Vec::new());
            if self.peek().word != Word::Sign(")") {
                loop {
                    spans.push(self.peek().span);
                    dims.push(self.tile_dim()?);
                    if self.eat(",").is_none() {
                        break;
                    }
                }
            }
            self.close(")", opened)?;
            places.tiles.push((Span::new(opened.span.start, self.last_end()), spans));
            tiles.push(Tile(dims));
            match self.eat("(") {
                Some(next) => opened = next,
                None => return Ok(tiles),
            }
        }
    }

    fn tile_dim(&mut self) -> Read<TileDim> {
        if self.eat("*").is_some() {
            return Ok(TileDim::Combine);
        }
        let help = match self.peek().word {
            Word::Int(Some(-1 | i64::MIN)) => "in text, a combined dimension is written `*`",
            _ => "a tile size is at least 1; `*` folds a dimension into the next more minor one",
        };
        Ok(TileDim::Size(self.number("a tile size", help)?))
    }

    fn splits(&mut self, places: &mut Places) -> Read<Vec<SplitConfig>> {
        let help = "write such as SC(1:1024,2048)";
        let mut configs = Vec::new();
        let mut opened = self.expect("(", help)?;
        loop {
            let dimension = self.number("a dimension", "dimensions are numbered from 0")?;
            let dimension = usize::try_from(dimension).unwrap_or(usize::MAX);
            self.expect(":", help)?;
            let (mut indices, mut spans) = (Vec::new(), Vec::new());
            if self.peek().word != Word::Sign(")") {
                loop {
                    spans.push(self.peek().span);
                    indices.push(self.number("a split index", "split indices are numbers from 0")?);
                    if self.eat(",").is_none() {
                        break;
                    }
                }
            }
            self.close(")", opened)?;
            places.splits.push((Span::new(opened.span.start, self.last_end()), spans));
            configs.push(SplitConfig { dimension, indices });
            match self.eat("(") {
                Some(next) => opened = next,
                None => return Ok(configs),
            }
        }
    }
}
