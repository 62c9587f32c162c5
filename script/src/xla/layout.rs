//! The parser of XLA's layouts. It records the location of every part, because most errors are found later, when
//! [`tilewright_ir::layout::ArrayShape::new`] checks how the parts fit together.

use tilewright_ir::layout::{DimAttribute, DimLevel, Layout, LayoutPart, SplitConfig, Tile, TileDim};
use tilewright_ir::{ElementType, Span};

use super::lexer::{Token, Word};
use super::read::{Parsed, Parser};

/// The locations of the parts of an array shape.
#[derive(Debug, Default)]
pub(super) struct PartSpans {
    /// The whole shape.
    pub(super) whole: Option<Span>,
    /// The extents, with their brackets.
    dimensions: Option<Span>,
    /// The layout, with its braces.
    layout: Option<Span>,
    /// Each dimension number.
    minor_to_major: Vec<Span>,
    /// Each dimension attribute.
    attributes: Vec<Span>,
    /// Each tile with its parentheses, and each dimension inside it.
    tiles: Vec<(Span, Vec<Span>)>,
    /// Each split configuration with its parentheses, and each index inside it.
    splits: Vec<(Span, Vec<Span>)>,
    /// The properties, each with its value.
    properties: Vec<(Property, Span)>,
}

impl PartSpans {
    /// Creates the locations of a shape of which only the extents were read so far.
    pub(super) fn with_dimensions(dimensions: Span) -> Self {
        Self { dimensions: Some(dimensions), ..Self::default() }
    }

    /// Returns the location of a part. A part without a location of its own has the location of the whole shape.
    pub(super) fn span_of(&self, part: LayoutPart) -> Option<Span> {
        let property =
            |wanted: Property| self.properties.iter().find(|(known, _)| *known == wanted).map(|(_, span)| *span);
        let nested = |list: &[(Span, Vec<Span>)], index: usize, inner: Option<usize>| {
            let (outer, parts) = list.get(index)?;
            Some(inner.and_then(|inner| parts.get(inner).copied()).unwrap_or(*outer))
        };
        let found = match part {
            LayoutPart::Whole => None,
            LayoutPart::Dimensions => self.dimensions,
            LayoutPart::MinorToMajor(Some(position)) => self.minor_to_major.get(position).copied(),
            // All numbers together; without any, the braces show where they would be.
            LayoutPart::MinorToMajor(None) => match (self.minor_to_major.first(), self.minor_to_major.last()) {
                (Some(first), Some(last)) => Some(Span::new(first.start, last.end)),
                _ => self.layout,
            },
            LayoutPart::DimAttributes(position) => position
                .and_then(|position| self.attributes.get(position).copied())
                .or_else(|| property(Property::DimAttributes)),
            LayoutPart::Tile(tile, dim) => nested(&self.tiles, tile, dim),
            LayoutPart::TailAlignment => property(Property::TailAlignment),
            LayoutPart::IndexType => property(Property::IndexType),
            LayoutPart::PointerType => property(Property::PointerType),
            LayoutPart::ElementBits => property(Property::ElementBits),
            LayoutPart::SplitConfig(config, index) => nested(&self.splits, config, index),
            LayoutPart::PhysicalShape => property(Property::PhysicalShape),
        };
        found.or(self.whole)
    }
}

/// A property of a layout.
///
/// The order of the variants is that in which XLA writes and reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Property {
    /// `D(..)`: the storage of each dimension.
    DimAttributes,
    /// `T(..)(..)`: the tiles.
    Tiles,
    /// `L(n)`: the alignment of the number of elements.
    TailAlignment,
    /// `#(type)`: the type of sparse indices.
    IndexType,
    /// `*(type)`: the type of sparse pointers.
    PointerType,
    /// `E(n)`: the distance between elements, in bits.
    ElementBits,
    /// `S(n)`: the memory space.
    MemorySpace,
    /// `SC(..)`: the splits between memories.
    SplitConfigs,
    /// `P(shape)`: the arrays that store a sparse array.
    PhysicalShape,
    /// `M(n)`: the bytes before the elements.
    MetadataPrefix,
}

impl Property {
    /// All properties, in XLA's order.
    const ALL: [Self; 10] = [
        Self::DimAttributes,
        Self::Tiles,
        Self::TailAlignment,
        Self::IndexType,
        Self::PointerType,
        Self::ElementBits,
        Self::MemorySpace,
        Self::SplitConfigs,
        Self::PhysicalShape,
        Self::MetadataPrefix,
    ];

    /// Returns the word that introduces the property.
    const fn word(self) -> &'static str {
        match self {
            Self::DimAttributes => "D",
            Self::Tiles => "T",
            Self::TailAlignment => "L",
            Self::IndexType => "#",
            Self::PointerType => "*",
            Self::ElementBits => "E",
            Self::MemorySpace => "S",
            Self::SplitConfigs => "SC",
            Self::PhysicalShape => "P",
            Self::MetadataPrefix => "M",
        }
    }

    /// Returns the property that a word introduces.
    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|property| property.word() == word)
    }
}

/// The help for a wrong property: those of [`Property::ALL`].
const PROPERTIES: &str = "the properties are D, T, L, #, *, E, S, SC, P, M, in this order";

impl Parser<'_> {
    /// Reads `{1,0:T(2,2)}`.
    pub(super) fn layout(&mut self, spans: &mut PartSpans) -> Parsed<Layout> {
        let opened = self.next();
        let mut order = Vec::new();
        // A scalar has no dimensions, so `{}` and `{:T(128)}` are layouts too.
        if matches!(self.peek().word, Word::Int(_)) {
            loop {
                spans.minor_to_major.push(self.peek().span);
                let dimension = self.number("a dimension", "dimensions are numbered from 0")?;
                order.push(usize::try_from(dimension).unwrap_or(usize::MAX));
                if self.eat(",").is_none() {
                    break;
                }
            }
        }
        let mut layout = Layout::new(order);
        if let Some(colon) = self.eat(":") {
            self.properties(&mut layout, spans, colon)?;
        }
        let help = if layout.minor_to_major.is_empty() {
            "a layout is such as {1,0:T(8,128)}: dimensions, then after `:` its properties"
        } else {
            "a layout ends with `}`; its properties follow a `:`"
        };
        let found = self.peek();
        let closed = self.eat("}").ok_or_else(|| {
            let message = format!("expected `}}`, found {}", found.describe());
            found.error("unclosed", message, help).with_label(opened.span, "opened here")
        })?;
        spans.layout = Some(Span::new(opened.span.start, closed.span.end));
        Ok(layout)
    }

    /// Reads `T(8,128)S(1)`: at least one property, each at most once and in XLA's order.
    fn properties(&mut self, layout: &mut Layout, spans: &mut PartSpans, colon: Token<'_>) -> Parsed<()> {
        let mut last: Option<Property> = None;
        loop {
            let token = self.peek();
            let word = match token.word {
                Word::Name(word) => word,
                Word::Sign(sign @ ("#" | "*")) => sign,
                Word::Int(_) | Word::Sign(_) | Word::End if last.is_none() => {
                    return Err(colon.error("property", "no property follows `:`", PROPERTIES));
                }
                Word::Int(_) | Word::Sign(_) | Word::End => return Ok(()),
            };
            let Some(property) = Property::from_word(word) else {
                return Err(token.error("property", format!("`{word}` is not a property of a layout"), PROPERTIES));
            };
            // XLA's reader expects this order, so text in another order would not be read back by it.
            if let Some(before) = last.filter(|last| property <= *last) {
                let message = if before == property {
                    format!("property `{word}` appears twice")
                } else {
                    format!("property `{word}` follows `{}`", before.word())
                };
                return Err(token.error("property-order", message, PROPERTIES));
            }
            last = Some(property);
            self.next();
            self.property(property, layout, spans)?;
            spans.properties.push((property, Span::new(token.span.start, self.last_end())));
        }
    }

    /// Reads the value of a property into `layout`.
    fn property(&mut self, property: Property, layout: &mut Layout, spans: &mut PartSpans) -> Parsed<()> {
        match property {
            Property::DimAttributes => layout.dim_attributes = self.attributes(spans)?,
            Property::Tiles => layout.tiles = self.tiles(spans)?,
            Property::TailAlignment => layout.tail_alignment = self.in_brackets(1, "an alignment")?,
            Property::IndexType => layout.index_type = Some(self.type_in_brackets()?),
            Property::PointerType => layout.pointer_type = Some(self.type_in_brackets()?),
            Property::ElementBits => layout.element_bits = self.in_brackets(0, "a number of bits")?,
            Property::MemorySpace => layout.memory_space = self.in_brackets(0, "a memory space")?,
            Property::SplitConfigs => layout.split_configs = self.splits(spans)?,
            Property::PhysicalShape => {
                let opened = self.expect("(", "write the shape in parentheses")?;
                layout.physical_shape = Some(Box::new(self.shape()?));
                self.close(")", opened)?;
            }
            Property::MetadataPrefix => layout.metadata_prefix_bytes = self.in_brackets(0, "a number of bytes")?,
        }
        Ok(())
    }

    /// Reads `(u32)`.
    fn type_in_brackets(&mut self) -> Parsed<ElementType> {
        let opened = self.expect("(", "write such as #(u32)")?;
        let ty = self.element_type()?;
        self.close(")", opened)?;
        Ok(ty)
    }

    /// Reads `(8)`, a number of at least `least`; `what` names it in errors, with its article.
    fn in_brackets(&mut self, least: u64, what: &str) -> Parsed<u64> {
        let opened = self.expect("(", "write the value in parentheses, such as L(8)")?;
        let help = format!("the value is one number that is at least {least}");
        let value = self.number_of_at_least(least, what, &help)?;
        self.close(")", opened)?;
        Ok(value)
    }

    /// Reads `(D,C+~)`, one attribute per dimension.
    fn attributes(&mut self, spans: &mut PartSpans) -> Parsed<Vec<DimAttribute>> {
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
                    let message = format!("{} is not a kind of dimension", token.describe());
                    let help = "a dimension is D (dense), C (compressed), S (singleton) or H (loose compressed)";
                    return Err(token.error("attribute", message, help));
                }
            };
            // XLA marks the exceptions: `+` for indices that repeat, `~` for indices without an order.
            let unique = self.eat("+").is_none();
            let ordered = self.eat("~").is_none();
            attributes.push(DimAttribute { level, unique, ordered });
            spans.attributes.push(Span::new(token.span.start, self.last_end()));
            if self.eat(",").is_none() {
                break;
            }
        }
        self.close(")", opened)?;
        Ok(attributes)
    }

    /// Reads `(8,128)(2,1)`, one list of dimensions per tile.
    pub(super) fn tiles(&mut self, spans: &mut PartSpans) -> Parsed<Vec<Tile>> {
        let mut tiles = Vec::new();
        let mut opened = self.expect("(", "write each tile in parentheses, such as T(8,128)")?;
        loop {
            let (mut dims, mut dim_spans) = (Vec::new(), Vec::new());
            if self.peek().word != Word::Sign(")") {
                loop {
                    dim_spans.push(self.peek().span);
                    dims.push(self.tile_dim()?);
                    if self.eat(",").is_none() {
                        break;
                    }
                }
            }
            self.close(")", opened)?;
            spans.tiles.push((Span::new(opened.span.start, self.last_end()), dim_spans));
            tiles.push(Tile(dims));
            match self.eat("(") {
                Some(next) => opened = next,
                None => return Ok(tiles),
            }
        }
    }

    /// Reads a tile size or `*`.
    fn tile_dim(&mut self) -> Parsed<TileDim> {
        if self.eat("*").is_some() {
            return Ok(TileDim::Combine);
        }
        let help = match self.peek().word {
            Word::Int(Some(-1 | i64::MIN)) => "in text, a combined dimension is written `*`",
            _ => "a tile size is at least 1; `*` folds a dimension into the next more minor one",
        };
        Ok(TileDim::Size(self.number_of_at_least(1, "a tile size", help)?))
    }

    /// Reads `(0:3)(1:0,4)`, a dimension number and its split indices per list.
    fn splits(&mut self, spans: &mut PartSpans) -> Parsed<Vec<SplitConfig>> {
        let help = "write such as SC(1:1024,2048)";
        let mut configs = Vec::new();
        let mut opened = self.expect("(", help)?;
        loop {
            let dimension = self.number("a dimension", "dimensions are numbered from 0")?;
            let dimension = usize::try_from(dimension).unwrap_or(usize::MAX);
            self.expect(":", help)?;
            // An empty list is read as it is; the check of the layout refuses it and names the dimension.
            let (mut indices, mut index_spans) = (Vec::new(), Vec::new());
            if self.peek().word != Word::Sign(")") {
                loop {
                    index_spans.push(self.peek().span);
                    indices.push(self.number("a split index", "split indices are numbers that are at least 0")?);
                    if self.eat(",").is_none() {
                        break;
                    }
                }
            }
            self.close(")", opened)?;
            spans.splits.push((Span::new(opened.span.start, self.last_end()), index_spans));
            configs.push(SplitConfig { dimension, indices });
            match self.eat("(") {
                Some(next) => opened = next,
                None => return Ok(configs),
            }
        }
    }
}
