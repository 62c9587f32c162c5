//! Builds the program before from its recipe.

use super::nest::{Function, Node, Param};
use super::recipe::{Asserted, Base, Compare, Guard, Index, Kind, Name, Premise, Request, Rows, Value, View};

/// The variable of the outer loop.
pub(super) const OUTER: &str = "o";
/// The variable of the inner loop.
pub(super) const INNER: &str = "i";
/// The variable that a name may be bound to.
const BOUND: &str = "x";

/// The parts of a program that are named in several places.
struct Parts<'a> {
    base: &'a Base,
    /// The element type.
    dtype: &'static str,
    /// The row and the column of an iteration, from 0.
    row: String,
    column: String,
    /// The integer of any sign.
    name: String,
    /// The number of rows.
    rows: String,
}

/// Builds the function.
pub(super) fn function(base: &Base) -> Function {
    let parts = Parts::of(base);
    let (index, mut conditions) = parts.index();
    let target = if matches!(base.view, View::Declared(..)) { "V" } else { "B" };
    let mut body = Vec::new();
    if base.value == Value::Through {
        let (index, value) = (parts.element(), format!("A[{}]", parts.element()));
        body.push(Node::Store { buffer: "C", index, value });
    }
    body.push(match base.value {
        Value::Texture => {
            let texel = Node::Store { buffer: "T0", index: format!("{}, c", parts.element()), value: parts.own() };
            serial("c", "4".into(), vec![texel])
        }
        _ => Node::Store { value: parts.value(target, &index), buffer: target, index },
    });
    conditions.extend(base.guard.map(|guard| condition(guard, &parts.name, &parts.column)));
    if !conditions.is_empty() {
        body = vec![Node::If { conditions, body }];
    }
    body = vec![axis(INNER, base.inner, base.inner.extent.to_string(), body)];
    let bound = match base.name {
        Name::Bound => Some(format!("K[{}]", parts.row)),
        Name::Computed => Some(format!("{OUTER} * 2 - 3")),
        Name::Outer | Name::Scalar | Name::Second | Name::Loaded => None,
    };
    if let Some(value) = bound {
        body = vec![Node::Let { var: BOUND.into(), value, body }];
    }
    let is_own = base.rows == Rows::Stated || base.huge.is_some_and(|huge| !huge.is_iterated);
    let count = if is_own { outer_rows(base) } else { parts.rows.clone() };
    let mut body = vec![axis(OUTER, base.outer, count, body)];
    if base.value == Value::Texture {
        let store = Node::Store { buffer: target, index: "r, q".into(), value: "T0[r, q, 1]".into() };
        let columns = serial("q", base.inner.extent.to_string(), vec![store]);
        body.push(serial("r", outer_rows(base), vec![columns]));
    }
    if let (Some(extent), Some(_)) = (base.second, base.outer.kind.thread()) {
        let store = Node::Store { buffer: "D", index: "p".into(), value: parts.cast("p + k") };
        let var = "p".to_owned();
        body.push(Node::For { var, kind: base.outer.kind, min: 0, extent: extent.to_string(), body: vec![store] });
    }
    Function {
        params: parts.params(),
        symbols: symbols(base),
        attrs: request(base.request),
        premises: premises(base),
        locals: parts.locals(),
        body,
    }
}

/// The names of symbolic extents.
fn symbols(base: &Base) -> Vec<&'static str> {
    let mut symbols = Vec::new();
    if base.rows == Rows::Symbol {
        symbols.push("n");
    }
    if base.premise == Some(Premise::Oversized) && base.rows != Rows::Symbol {
        symbols.push("h");
    }
    symbols
}

/// The number of iterations of the outer loop as the recipe has it.
fn outer_rows(base: &Base) -> String {
    base.outer.extent.to_string()
}

/// A loop. Loops over thread indices start at 0.
fn axis(var: &str, axis: super::recipe::Axis, extent: String, body: Vec<Node>) -> Node {
    Node::For { var: var.into(), kind: axis.kind, min: first(axis), extent, body }
}

/// A serial loop from 0.
fn serial(var: &str, extent: String, body: Vec<Node>) -> Node {
    Node::For { var: var.into(), kind: Kind::Serial, min: 0, extent, body }
}

/// The first value of a loop's variable.
fn first(axis: super::recipe::Axis) -> i64 {
    if axis.kind.thread().is_some() { 0 } else { axis.min }
}

/// A comparison as text.
fn compare(left: &str, how: Compare, right: i64) -> String {
    let operator = match how {
        Compare::Lt => "<",
        Compare::Ge => ">=",
        Compare::Gt => ">",
        Compare::Eq => "==",
        Compare::Ne => "!=",
    };
    format!("{left} {operator} {right}")
}

/// A guard as text.
pub(super) fn condition(guard: Guard, name: &str, column: &str) -> String {
    match guard {
        Guard::Name(how, number) => compare(name, how, number),
        Guard::Below(number) => compare(column, Compare::Lt, number),
        Guard::Quotient(divisor, number) => {
            compare(&format!("({column}) // {}", nonzero(divisor)), Compare::Lt, number)
        }
    }
}

/// A divisor: -1 in place of 0.
fn nonzero(divisor: i64) -> i64 {
    if divisor == 0 { -1 } else { divisor }
}

/// The assertions of a program.
fn premises(base: &Base) -> Vec<String> {
    match base.premise {
        None | Some(Premise::Oversized) => Vec::new(),
        Some(Premise::WithoutValue) => vec!["k // 0 == 1".into()],
        Some(Premise::Contradictory(number)) => {
            vec![compare("k", Compare::Lt, number), compare("k", Compare::Ge, number + 1)]
        }
        Some(Premise::Scalar(how, number)) => vec![compare("k", how, number)],
        Some(Premise::Stated(what, how, number, least)) => {
            let integer = match what {
                Asserted::Rows if base.rows == Rows::Symbol && base.huge.is_none() => "n",
                Asserted::Scalar | Asserted::Rows => "k",
                Asserted::Sum => "k % 8 + m % 8",
                Asserted::Loaded if matches!(base.name, Name::Bound | Name::Loaded) => "K[0]",
                Asserted::Loaded => "m",
            };
            vec![compare(integer, how, number), compare(integer, Compare::Ge, least)]
        }
    }
}

/// The attribute for a layout request.
pub(super) fn request(request: Option<Request>) -> Option<&'static str> {
    request.map(|request| match request {
        Request::Transposed => "{\"layout_transform_map\": {B: [lambda i, j: [j, i]]}}",
        Request::Blocked => "{\"layout_transform_map\": {B: [lambda i, j: [j // 2, i, j % 2]]}}",
        Request::Tiled => "{\"tile_layout\": {B: \"{1,0:T(2,4)}\"}}",
        Request::TiledColumns => "{\"tile_layout\": {B: \"{0,1:T(2,4)}\"}}",
    })
}

impl<'a> Parts<'a> {
    /// The parts of a program. Huge sizes replace the number of rows, whatever states it.
    fn of(base: &'a Base) -> Self {
        let since = |var: &str, first: i64| match first {
            0 => var.to_owned(),
            1.. => format!("{var} - {first}"),
            _ => format!("{var} + {}", -first),
        };
        let row = since(OUTER, first(base.outer));
        let name = match base.name {
            Name::Outer => OUTER.into(),
            Name::Scalar => "k".into(),
            Name::Second => "m".into(),
            Name::Bound | Name::Computed => BOUND.into(),
            Name::Loaded => format!("K[{row}]"),
        };
        let rows = match (base.huge, base.rows) {
            (Some(huge), _) => huge.rows.to_string(),
            (None, Rows::Constant) => outer_rows(base),
            (None, Rows::Symbol) => "n".into(),
            (None, Rows::Scalar | Rows::Stated) => "k".into(),
        };
        let dtype = if base.integers { "int32" } else { "float32" };
        Self { base, dtype, row, column: since(INNER, first(base.inner)), name, rows }
    }

    /// The indices of the iteration's own element.
    fn element(&self) -> String {
        format!("{}, {}", self.row, self.column)
    }

    /// The indices of the store, and the conditions that keep it inside.
    fn index(&self) -> (String, Vec<String>) {
        let (column, name, extent) = (&self.column, &self.name, self.base.inner.extent);
        let inside = |index: &str| vec![format!("{index} >= 0"), format!("{index} < {extent}")];
        match self.base.index {
            Index::Element => (self.element(), Vec::new()),
            Index::Column => (format!("0, {column}"), Vec::new()),
            Index::Row => (format!("{}, 0", self.row), Vec::new()),
            Index::Chosen(how, number) => {
                (format!("0, T.if_then_else({}, {column}, 0)", compare(name, how, number)), Vec::new())
            }
            Index::Product => {
                let index = format!("({column}) * {name}");
                (format!("0, {index}"), inside(&index))
            }
            Index::Quotient => {
                let index = format!("({column}) // {name}");
                let mut conditions = vec![format!("{name} != 0")];
                conditions.extend(inside(&index));
                (format!("0, {index}"), conditions)
            }
        }
    }

    /// An integer as a value of the element type.
    fn cast(&self, integer: &str) -> String {
        if self.base.integers { integer.to_owned() } else { format!("T.Cast(\"float32\", {integer})") }
    }

    /// The iteration's own element of `A`.
    fn own(&self) -> String {
        format!("A[{}]", self.element())
    }

    /// The stored value.
    fn value(&self, target: &str, index: &str) -> String {
        let (row, column, name) = (&self.row, &self.column, &self.name);
        let own = self.own();
        match self.base.value {
            Value::Copy | Value::Texture => own,
            Value::Plus(by) => format!("{own} + {}", self.cast(&format!("{name} * {by}"))),
            Value::Divided(by) => {
                let by = nonzero(by);
                format!("{own} + {}", self.cast(&format!("({column}) // {by} + {name} % {by}")))
            }
            Value::Difference => self.cast("k - m"),
            Value::Sum => format!("{own} + A[{row}, {column} + 1] + A[{row}, {column} + 2]"),
            Value::Accumulate => format!("{target}[{index}] + {own}"),
            Value::Neighbour(by) => {
                let cols = self.base.inner.extent;
                format!("{target}[{row}, ({column} + {}) % {cols}] + {own}", by.rem_euclid(cols.max(1)))
            }
            Value::Through => format!("C[{}]", self.element()),
        }
    }

    /// The parameters.
    fn params(&self) -> Vec<Param> {
        let (base, rows, dtype) = (self.base, &self.rows, self.dtype);
        let cols = base.inner.extent;
        let mut params = vec![Param::Scalar("k"), Param::Scalar("m")];
        params.push(Param::Buffer("A", format!("({rows}, {}), \"{dtype}\"", cols + 2)));
        let form = self.form(base.view);
        params.push(Param::Buffer("B", form));
        if matches!(base.name, Name::Bound | Name::Loaded) {
            params.push(Param::Buffer("K", format!("({rows},), \"int32\"")));
        }
        if base.value == Value::Through {
            params.push(Param::Buffer("C", format!("({rows}, {cols}), \"{dtype}\"")));
        }
        if let (Some(extent), Some(_)) = (base.second, base.outer.kind.thread()) {
            params.push(Param::Buffer("D", format!("({},), \"{dtype}\"", extent + 4)));
        }
        if base.premise == Some(Premise::Oversized) {
            let rows = if base.rows == Rows::Symbol { "n" } else { "h" };
            params.push(Param::Buffer("H", format!("({rows}, 2147483647), \"float32\"")));
        }
        params
    }

    /// The form of `B` as a parameter.
    fn form(&self, view: View) -> String {
        let (rows, cols, dtype) = (&self.rows, self.base.inner.extent, self.dtype);
        let plain = format!("({rows}, {cols}), \"{dtype}\"");
        match view {
            View::Plain | View::Declared(..) => plain,
            View::Strides(row, column) => format!("{plain}, strides=[{row}, {column}]"),
            View::SymbolicStride => format!("{plain}, strides=[m, 1]"),
            View::Offset(by) => format!("{plain}, elem_offset={by}"),
            View::SymbolicOffset => format!("{plain}, elem_offset=m"),
            View::SymbolicShape => format!("({rows} + m, {cols}), \"{dtype}\""),
        }
    }

    /// The declared view of `B`, and the texture.
    fn locals(&self) -> Vec<(String, String)> {
        let (rows, cols, dtype) = (&self.rows, self.base.inner.extent, self.dtype);
        let mut locals = Vec::new();
        if let View::Declared(row, column) = self.base.view {
            let form = format!("T.decl_buffer(({rows}, {cols}), \"{dtype}\", data=B.data, strides=[{row}, {column}])");
            locals.push(("V".into(), form));
        }
        if self.base.value == Value::Texture {
            locals.push(("T0".into(), format!("T.alloc_buffer(({rows}, {cols}, 4), \"{dtype}\", scope=\"texture\")")));
        }
        locals
    }
}

/// The name of a program, and the column of an iteration, as text.
pub(super) fn name_and_column(base: &Base) -> (String, String) {
    let parts = Parts::of(base);
    (parts.name, parts.column)
}

/// The number of rows of all buffers, which is that of the outer loop's iterations; `None` if these differ, or cannot be allocated.
pub(super) fn plain_rows(base: &Base) -> Option<String> {
    let is_plain = base.huge.is_none() && matches!(base.rows, Rows::Constant | Rows::Symbol);
    is_plain.then(|| Parts::of(base).rows)
}

/// The row of an iteration, from 0, as text.
pub(super) fn row(base: &Base) -> String {
    Parts::of(base).row
}

/// The number of columns of `B`; `A` has two more.
pub(super) fn cols(base: &Base) -> i64 {
    base.inner.extent
}

/// Whether every iteration stores to an element of its own, whatever the name is.
pub(super) fn is_one_to_one(base: &Base) -> bool {
    let apart = match base.view {
        View::Plain | View::Offset(_) | View::SymbolicOffset | View::SymbolicShape => true,
        View::Strides(..) | View::SymbolicStride | View::Declared(..) => false,
    };
    apart && base.index == Index::Element
}

/// Whether a kind of loop may be restructured: its iterations run in order.
pub(super) fn in_order(kind: Kind) -> bool {
    kind == Kind::Serial
}
