//! Pairs of programs that combine the elements of each row of a matrix: one after the other, and in another way.
//!
//! ```text
//! for i in range(n):                             for i in range(n):
//!     C[i] = 0                                       C[i] = 0
//!     for k in range(m):                             for k in range(m):
//!         C[i] = C[i] + A[i, k]                          C[i] = C[i] + A[i, m - 1 - k]
//! ```
//!
//! Integers wrap, so that the order does not matter; a pair without a mistake computes the same. Of floats, runs decide.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::config::Config;

/// A pair of programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reduction {
    /// The seed of the input values.
    pub seed: u64,
    /// Whether the elements are `float32` and not `int32`.
    pub floats: bool,
    /// How two values are combined.
    pub operator: Operator,
    /// Where each row starts.
    pub start: Start,
    /// The value that an element contributes.
    pub source: Source,
    /// Which elements take part.
    pub guard: Guard,
    /// The way of the program after.
    pub way: Way,
    /// The number of digits or parts.
    pub factor: i64,
    /// The mistake of the program after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<Mistake>,
    /// A change of the definition that the program after is said to compute.
    pub bend: Bend,
}

/// How two values are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// Sum.
    Sum,
    /// Sum of what is subtracted; parts of it are sums.
    Difference,
    /// Product.
    Prod,
    /// Maximum.
    Max,
    /// Minimum.
    Min,
}

/// Where a row starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// From 0.
    Zero,
    /// From 1.
    One,
    /// From the first element.
    First,
    /// From what was there.
    Old,
}

/// The value that an element contributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The element.
    Plain,
    /// The element times three.
    Scaled,
    /// The element if it is positive.
    Positive,
    /// The element, and three times the element by a store of its own.
    Twice,
}

/// Which elements take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Guard {
    /// All.
    All,
    /// The first two.
    Few,
    /// Those at even places.
    Even,
}

/// In which way the program after combines the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the first one.
    Same,
    /// From the last one.
    Backwards,
    /// In tiles, the inner digit outside.
    Digits,
    /// One result for each digit, and these together.
    Parts,
    /// One result for each tile, and these together.
    Blocks,
}

/// A mistake of the program after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mistake {
    /// The element of another row.
    Row,
    /// The last element is left out.
    Bound,
    /// Elements that do not take part do.
    Guard,
    /// Another operator.
    Operator,
    /// Another start.
    Start,
    /// Another value.
    Source,
}

/// A change of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bend {
    /// None of the conditions.
    Condition,
    /// No start value.
    Start,
    /// Another operator.
    Operator,
    /// One value more.
    Source,
    /// One iteration less.
    Extent,
}

impl Operator {
    fn of(self, a: &str, b: &str) -> String {
        match self {
            Self::Sum => format!("{a} + {b}"),
            Self::Difference => format!("{a} - ({b})"),
            Self::Prod => format!("{a} * ({b})"),
            Self::Max => format!("T.max({a}, {b})"),
            Self::Min => format!("T.min({a}, {b})"),
        }
    }

    /// The operator of a mistake.
    fn other(self) -> Self {
        match self {
            Self::Sum => Self::Prod,
            Self::Difference => Self::Sum,
            Self::Prod => Self::Sum,
            Self::Max => Self::Min,
            Self::Min => Self::Max,
        }
    }
}

impl Reduction {
    /// The program before, and the one after.
    pub fn texts(&self) -> [String; 2] {
        let before = Self { way: Way::Same, mistake: None, ..self.clone() };
        [before.program(), self.program()]
    }

    /// Whether the program after computes something else without a mistake: parts that start from 0, which is not neutral.
    pub fn differs(&self) -> bool {
        matches!(self.way, Way::Parts | Way::Blocks) && matches!(self.operator, Operator::Max | Operator::Min)
    }

    fn number(&self, value: i64) -> String {
        if self.floats { format!("T.float32({value})") } else { value.to_string() }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    fn program(&self) -> String {
        let ty = if self.floats { "float32" } else { "int32" };
        let mut text = format!(
            "@T.prim_func\ndef main(a: T.handle, c: T.handle):\n    n = T.int32()\n    m = T.int32()\n    \
             A = T.match_buffer(a, (n, m), \"{ty}\")\n    C = T.match_buffer(c, (n,), \"{ty}\")\n"
        );
        let f = self.factor;
        let parts = match self.way {
            Way::Parts => Some((format!("({f},)"), f.to_string())),
            Way::Blocks => Some((format!("((m + {}) // {f},)", f - 1), format!("(m + {}) // {f}", f - 1))),
            Way::Same | Way::Backwards | Way::Digits => None,
        };
        let (outer, inner) = (format!("(m + {}) // {f}", f - 1), f.to_string());
        let mut lines: Vec<(usize, String)> = Vec::new();
        let mut add = |depth: usize, line: String| lines.push((depth, line));
        if let Some((shape, _)) = &parts {
            add(0, format!("R = T.alloc_buffer({shape}, \"{ty}\")"));
        }
        add(0, "for i in range(n):".into());
        if let Some(start) = self.start() {
            add(1, format!("C[i] = {start}"));
        }
        let end = if self.is(Mistake::Bound) { "m - 1" } else { "m" };
        let digits = format!("ko * {f} + ki");
        match self.way {
            Way::Same | Way::Backwards => {
                let k = if self.way == Way::Same { "k".to_owned() } else { format!("{end} - 1 - k") };
                add(1, format!("for k in range({end}):"));
                self.combine(2, "C[i]", &k, &mut add);
            }
            Way::Digits => {
                add(1, format!("for ki in range({inner}):"));
                add(2, format!("for ko in range({outer}):"));
                add(3, format!("if {digits} < {end}:"));
                self.combine(4, "C[i]", &digits, &mut add);
            }
            Way::Parts | Way::Blocks => {
                let is_digit = self.way == Way::Parts;
                let (part, other) = if is_digit { ("ki", "ko") } else { ("ko", "ki") };
                let (n_parts, rest) = if is_digit { (&inner, &outer) } else { (&outer, &inner) };
                add(1, format!("for {part} in range({n_parts}):"));
                let neutral = i64::from(self.operator == Operator::Prod);
                add(2, format!("R[{part}] = {}", self.number(neutral)));
                add(2, format!("for {other} in range({rest}):"));
                add(3, format!("if {digits} < {end}:"));
                let inside = if self.operator == Operator::Difference && !self.is(Mistake::Operator) {
                    Self { operator: Operator::Sum, ..self.clone() }
                } else {
                    self.clone()
                };
                inside.combine(4, &format!("R[{part}]"), &digits, &mut add);
                add(1, format!("for {part} in range({n_parts}):"));
                add(2, format!("C[i] = {}", self.operator.of("C[i]", &format!("R[{part}]"))));
            }
        }
        for (depth, line) in lines {
            text.push_str(&"    ".repeat(depth + 1));
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The value that a row starts from; nothing for what was there.
    fn start(&self) -> Option<String> {
        let off = i64::from(self.is(Mistake::Start));
        match self.start {
            Start::Zero => Some(self.number(off)),
            Start::One => Some(self.number(1 + off)),
            Start::First if self.is(Mistake::Start) => Some("A[i, m - 1]".into()),
            Start::First => Some("A[i, 0]".into()),
            Start::Old => self.is(Mistake::Start).then(|| self.number(2)),
        }
    }

    /// The lines that combine an element.
    fn combine(&self, depth: usize, so_far: &str, k: &str, add: &mut impl FnMut(usize, String)) {
        let guard = match self.guard {
            Guard::Few if !self.is(Mistake::Guard) => Some(format!("{k} < 2")),
            Guard::Even if !self.is(Mistake::Guard) => Some(format!("({k}) % 2 == 0")),
            Guard::All | Guard::Few | Guard::Even => None,
        };
        let depth = if let Some(guard) = guard {
            add(depth, format!("if {guard}:"));
            depth + 1
        } else {
            depth
        };
        let element = if self.is(Mistake::Row) { format!("A[0, {k}]") } else { format!("A[i, {k}]") };
        let source = match self.source {
            _ if self.is(Mistake::Source) => format!("({element} - {})", self.number(1)),
            Source::Plain => element,
            Source::Scaled => format!("{element} * {}", self.number(3)),
            Source::Twice => {
                let operator = if self.is(Mistake::Operator) { self.operator.other() } else { self.operator };
                add(depth, format!("{so_far} = {}", operator.of(so_far, &element)));
                format!("{element} * {}", self.number(3))
            }
            Source::Positive => {
                format!("T.if_then_else({element} > {}, {element}, {})", self.number(0), self.number(0))
            }
        };
        let operator = if self.is(Mistake::Operator) { self.operator.other() } else { self.operator };
        add(depth, format!("{so_far} = {}", operator.of(so_far, &source)));
    }
}

impl Case for Reduction {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let operator = *u.choose(&[
            Operator::Sum,
            Operator::Sum,
            Operator::Difference,
            Operator::Prod,
            Operator::Max,
            Operator::Min,
        ])?;
        let mistakes =
            [Mistake::Row, Mistake::Bound, Mistake::Guard, Mistake::Operator, Mistake::Start, Mistake::Source];
        let mistake = if u.ratio(1u8, 2u8)? { Some(*u.choose(&mistakes)?) } else { None };
        let neutral = if operator == Operator::Prod { Start::One } else { Start::Zero };
        Ok(Self {
            seed: u.arbitrary()?,
            floats: u.ratio(1u8, 4u8)?,
            operator,
            start: *u.choose(&[neutral, neutral, Start::Zero, Start::One, Start::First, Start::Old])?,
            source: *u.choose(&[Source::Plain, Source::Plain, Source::Scaled, Source::Positive, Source::Twice])?,
            guard: *u.choose(&[Guard::All, Guard::All, Guard::Few, Guard::Even])?,
            way: *u.choose(&[Way::Same, Way::Backwards, Way::Digits, Way::Parts, Way::Blocks])?,
            factor: u.int_in_range(2..=4)?,
            mistake,
            bend: *u.choose(&[Bend::Condition, Bend::Start, Bend::Operator, Bend::Source, Bend::Extent])?,
        })
    }

    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut add = |other: Self| {
            if other != *self {
                found.push(other);
            }
        };
        add(Self { way: Way::Same, ..self.clone() });
        add(Self { guard: Guard::All, ..self.clone() });
        add(Self { source: Source::Plain, ..self.clone() });
        add(Self { operator: Operator::Sum, ..self.clone() });
        add(Self { factor: 2, ..self.clone() });
        add(Self { floats: false, ..self.clone() });
        found
    }

    fn features(&self) -> Vec<String> {
        let mistake = self.mistake.map_or("none".into(), |mistake| format!("{mistake:?}"));
        let (operator, way, bend) = (self.operator, self.way, self.bend);
        vec![
            format!("operator:{operator:?}"),
            format!("way:{way:?}"),
            format!("mistake:{mistake}"),
            format!("bend:{bend:?}"),
        ]
    }

    fn text(&self) -> String {
        let [before, after] = self.texts();
        format!("before:\n{before}\nafter:\n{after}")
    }
}
