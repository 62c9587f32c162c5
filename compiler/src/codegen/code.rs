//! Pieces of C with the precedence of their outermost operator, put together with as few brackets as are readable.
//!
//! ```text
//! infix("*", PRODUCT, a + b, c)    (a + b) * c
//! infix("+", SUM, a * b, c)        a * b + c
//! infix("&", BIT_AND, a + b, c)    (a + b) & c      C needs no brackets here, but readers do
//! ```

/// A piece of C and how tightly its outermost operator binds.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) text: String,
    pub(crate) binds: u8,
}

/// Precedence of names, constants and calls. A greater number binds tighter; the others follow C's table.
pub(crate) const ATOM: u8 = 15;
pub(crate) const PREFIX: u8 = 14;
pub(crate) const PRODUCT: u8 = 13;
pub(crate) const SUM: u8 = 12;
pub(crate) const SHIFT: u8 = 11;
pub(crate) const ORDER: u8 = 10;
pub(crate) const EQUALITY: u8 = 9;
pub(crate) const BIT_AND: u8 = 8;
pub(crate) const BIT_XOR: u8 = 7;
pub(crate) const BIT_OR: u8 = 6;
pub(crate) const LOGICAL_AND: u8 = 5;
pub(crate) const LOGICAL_OR: u8 = 4;
pub(crate) const CONDITIONAL: u8 = 3;

impl Code {
    /// A name, a constant or a call: no operator is outermost.
    pub(crate) fn atom(text: impl Into<String>) -> Self {
        Self { text: text.into(), binds: ATOM }
    }

    /// Returns the text as an operand that must bind at least as tightly as `binds`, in brackets if it does not.
    pub(crate) fn within(&self, binds: u8) -> String {
        if self.binds < binds { format!("({})", self.text) } else { self.text.clone() }
    }

    /// The text as the operand of a cast.
    pub(crate) fn operand(&self) -> String {
        self.within(PREFIX)
    }

    /// A call of a function.
    pub(crate) fn call(function: &str, args: &[&Self]) -> Self {
        let args: Vec<_> = args.iter().map(|arg| arg.text.as_str()).collect();
        Self::atom(format!("{function}({})", args.join(", ")))
    }

    /// `value` converted to a type by a cast.
    pub(crate) fn cast(ty: &str, value: &Self) -> Self {
        Self { text: format!("({ty}){}", value.operand()), binds: PREFIX }
    }

    /// `lhs symbol rhs`, where `binds` is the precedence of the operator.
    pub(crate) fn infix(symbol: &str, binds: u8, lhs: &Self, rhs: &Self) -> Self {
        // C needs no brackets in `a << b + c` or `a & b == c`, but few readers know the order, so they are written.
        let (left, right) = match binds {
            PRODUCT | SUM => (binds, binds + 1),
            LOGICAL_AND | LOGICAL_OR => (binds, EQUALITY),
            ORDER | EQUALITY => (SUM, SUM),
            _ => (PREFIX, PREFIX),
        };
        Self { text: format!("{} {symbol} {}", lhs.within(left), rhs.within(right)), binds }
    }
}
