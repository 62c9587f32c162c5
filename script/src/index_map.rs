//! Index maps, shapes, conditions and predicates as text: `lambda n, h, w, c: [n, c // 4, h, w, c % 4]`, `n,64,64,c`.
//!
//! These are the notations of the command line. TVMScript uses the same lambdas in `layout_transform_map`.
//!
//! ```
//! use tilewright_script::{Symbols, read_index_map, read_shape};
//! let mut symbols = Symbols::default();
//! let shape = read_shape("n,64,c", &mut symbols)?;
//! let map = read_index_map("lambda *i: [*i[:-1], AXIS_SEPARATOR, i[-1] // 4, i[-1] % 4]", Some(&shape), &mut symbols)?;
//! assert_eq!(map.to_string(), "lambda i0, i1, i2: [i0, i1, AXIS_SEPARATOR, i2 // 4, i2 % 4]");
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{BinaryOp, Bindings, DataType, Diagnostic, Expr, IndexMap, ScalarType, Span, Var};

use crate::source::{parse_expression, span};
use crate::tvmscript::reader::{Binding, Reader, SEPARATOR, sequence};

/// Symbolic extents by name. A name always denotes the same variable.
#[derive(Clone, Debug, Default)]
pub struct Symbols(Vec<Var>);

impl Symbols {
    /// Returns the variable with this name. A new one has the type `int32`.
    pub fn get(&mut self, name: &str) -> Var {
        self.declare(name, DataType::INT32)
    }

    /// Returns the variable with this name. A new one has the type `ty`.
    pub fn declare(&mut self, name: &str, ty: DataType) -> Var {
        if let Some(var) = self.0.iter().find(|var| var.name() == name) {
            return var.clone();
        }
        let var = Var::new(name, ty);
        self.0.push(var.clone());
        var
    }

    /// Returns all variables, in order of their first use.
    pub fn vars(&self) -> &[Var] {
        &self.0
    }
}

impl FromIterator<Var> for Symbols {
    /// The symbols that are known before a text is read, each with its own type.
    fn from_iter<I: IntoIterator<Item = Var>>(vars: I) -> Self {
        Self(vars.into_iter().collect())
    }
}

/// Returns the first place of a name in a text as a whole word; all of the text if there is none.
///
/// ```
/// use tilewright_ir::Span;
/// use tilewright_script::span_of_name;
/// assert_eq!(span_of_name("k", "lambda kk, i: [kk + k]"), Span::new(20, 21));
/// assert_eq!(span_of_name("é", "é + 1"), Span::new(0, 2));
/// assert_eq!(span_of_name("z", "abc"), Span::new(0, 3));
/// ```
pub fn span_of_name(name: &str, text: &str) -> Span {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let whole = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    };
    let found = text.match_indices(name).map(|(at, _)| at).find(|&at| whole(at));
    let (start, end) = found.map_or((0, text.len()), |at| (at, at + name.len()));
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Span::new(offset(start), offset(end))
}

/// Reads an index map over the logical shape `shape`. Without a shape, the extent of an index `n` is the symbol
/// `n_extent`. Names other than the lambda's parameters are symbolic extents.
///
/// # Errors
/// The text is not a lambda over as many indices as the shape has axes, or an output is not an integer expression.
/// All problems are returned, with locations in `text`.
pub fn read_index_map(text: &str, shape: Option<&[Expr]>, symbols: &mut Symbols) -> Result<IndexMap, Vec<Diagnostic>> {
    let tree = parse_expression(text)?;
    let mut reader = Reader::for_indices(std::mem::take(symbols));
    let map = reader.index_map(&tree, shape.map(<[Expr]>::to_vec));
    *symbols = std::mem::take(&mut reader.symbols);
    map.filter(|_| reader.errors.is_empty()).ok_or(reader.errors)
}

/// Returns the place of each output of an index map in its text. Returns `None` if the text is not a lambda, or if one
/// part of it stands for several outputs, such as `*indices`.
pub fn output_spans(text: &str) -> Option<Vec<Span>> {
    let ast::Expr::Lambda(lambda) = parse_expression(text).ok()? else { return None };
    let parts = sequence(&lambda.body).unwrap_or(std::slice::from_ref(&lambda.body));
    let is_several = |part: &ast::Expr| matches!(part, ast::Expr::Starred(_)) || sequence(part).is_some();
    let outputs: Vec<_> = parts.iter().filter(|part| !is_separator(part)).collect();
    outputs.iter().all(|part| !is_several(part)).then(|| outputs.iter().map(|part| span(part.range())).collect())
}

/// Reads a shape such as `n,64,(c+3)//4`, with or without brackets. Names are symbolic extents.
///
/// # Errors
/// An extent is not an integer expression, or is a negative constant. Locations refer to `text`.
pub fn read_shape(text: &str, symbols: &mut Symbols) -> Result<Vec<Expr>, Vec<Diagnostic>> {
    let tree = parse_expression(text)?;
    let mut reader = Reader::for_indices(std::mem::take(symbols));
    let shape = reader.extents(&tree, text);
    *symbols = std::mem::take(&mut reader.symbols);
    shape.filter(|_| reader.errors.is_empty()).ok_or(reader.errors)
}

/// Reads a condition on symbolic extents, such as `c % 4 == 0` or `1 <= n <= 1024`.
///
/// ```
/// use tilewright_script::{Symbols, read_condition};
/// let condition = read_condition("c % 4 == 0 and n <= 1024", &mut Symbols::default())?;
/// assert_eq!(condition.to_string(), "c % 4 == 0 and n <= 1024");
/// assert!(read_condition("c % 4", &mut Symbols::default()).is_err());
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
///
/// # Errors
/// The text is not an expression of type `bool`. Locations refer to `text`.
pub fn read_condition(text: &str, symbols: &mut Symbols) -> Result<Expr, Vec<Diagnostic>> {
    let tree = parse_expression(text)?;
    let mut reader = Reader::for_indices(std::mem::take(symbols));
    let condition = reader.scalar_condition(&tree);
    *symbols = std::mem::take(&mut reader.symbols);
    condition.filter(|_| reader.errors.is_empty()).ok_or(reader.errors)
}

/// Reads a predicate on the indices of `shape`, such as `lambda p, q: 17 <= p * 4 + q`. Returns the variables of the
/// indices and the condition.
///
/// # Errors
/// The text is not a lambda over as many indices as the shape has axes, or its body is not of type `bool`. Locations
/// refer to `text`.
pub fn read_predicate(text: &str, shape: &[Expr], symbols: &mut Symbols) -> Result<(Vec<Var>, Expr), Vec<Diagnostic>> {
    let tree = parse_expression(text)?;
    let mut reader = Reader::for_indices(std::mem::take(symbols));
    let predicate = reader.predicate(&tree, shape.to_vec());
    *symbols = std::mem::take(&mut reader.symbols);
    predicate.filter(|_| reader.errors.is_empty()).ok_or(reader.errors)
}

impl<'a> Reader<'a> {
    /// Reads an expression of type `bool` with one lane.
    fn scalar_condition(&mut self, tree: &'a ast::Expr) -> Option<Expr> {
        let condition = self.expr(tree)?;
        let ty = condition.dtype();
        if ty.scalar == ScalarType::Bool && ty.is_scalar() {
            return Some(condition);
        }
        let message = format!("`{condition}` is a number of the type {ty}, neither true nor false");
        self.error("type", tree.range(), message, "compare it with something, such as `c % 4 == 0`")
    }

    /// Reads a lambda whose body is a condition.
    fn predicate(&mut self, tree: &'a ast::Expr, domain: Vec<Expr>) -> Option<(Vec<Var>, Expr)> {
        let ast::Expr::Lambda(lambda) = tree else {
            return self.error(
                "predicate",
                tree.range(),
                "expected a lambda",
                "such as `lambda p, q: p * 4 + q >= 17`",
            );
        };
        let scope = self.names.len();
        let bound = self.lambda_params(lambda, Some(domain));
        let predicate = bound.and_then(|(vars, _)| Some((vars, self.scalar_condition(&lambda.body)?)));
        self.names.truncate(scope);
        predicate
    }

    /// Reads the extents of a shape, which `tree` is read from `text`: scalar integers that are not negative constants.
    fn extents(&mut self, tree: &'a ast::Expr, text: &str) -> Option<Vec<Expr>> {
        let parts = sequence(tree).unwrap_or(std::slice::from_ref(tree));
        let shape = self.exprs(parts)?;
        for (extent, part) in shape.iter().zip(parts) {
            let ty = extent.dtype();
            if !ty.scalar.is_integer() || !ty.is_scalar() || extent.as_const_int().is_some_and(|extent| extent < 0) {
                let (message, help) = match extent.as_const_int() {
                    Some(value) if value < 0 => {
                        let help = "an extent counts the indices of an axis: 3 means the indices 0, 1 and 2";
                        (format!("the extent {value} is negative"), help)
                    }
                    _ => {
                        // As it is written: a float is printed in another way.
                        let written = text.get(part.range().to_std_range()).unwrap_or_default();
                        (format!("`{written}` is not an extent"), "extents are integers that are at least 0")
                    }
                };
                return self.error("extent", part.range(), message, help);
            }
        }
        Some(shape)
    }

    /// Reads `lambda ...` or `T.index_map(lambda ..., shape=[...])`. The stated shape takes precedence over `domain`.
    pub(crate) fn index_map(&mut self, expr: &'a ast::Expr, domain: Option<Vec<Expr>>) -> Option<IndexMap> {
        match expr {
            ast::Expr::Call(call) if matches!(self.callee(&call.func), Some("index_map" | "IndexMap")) => {
                let params = ["mapping", "shape", "inverse_index_map"];
                let args = self.bind_args(call, "index_map", &params, 1)?;
                let domain = args.get(1).map_or(Some(domain), |shape| self.shape(shape).map(Some))?;
                self.index_map(args.get(0)?, domain)
            }
            ast::Expr::Lambda(lambda) => self.lambda(lambda, domain),
            other => {
                self.error("index-map", other.range(), "expected a lambda", "such as `lambda n, c: [n, c // 4, c % 4]`")
            }
        }
    }

    /// Reads a lambda over the indices of `domain`. The outputs are a list, a tuple or a single expression.
    fn lambda(&mut self, lambda: &'a ast::ExprLambda, domain: Option<Vec<Expr>>) -> Option<IndexMap> {
        let scope = self.names.len();
        let bound = self.lambda_params(lambda, domain);
        let outputs = bound.and_then(|(vars, domain)| Some((vars, domain, self.outputs(&lambda.body)?)));
        self.names.truncate(scope);
        let (vars, domain, (outputs, separators)) = outputs?;
        // The printed map would read `min(i, 4)` as a call of the index `min`.
        if let Some(hidden) =
            vars.iter().find(|var| outputs.iter().any(|output| contains_call(&output.to_string(), var.name())))
        {
            let message = format!("the index `{hidden}` hides the function of its name");
            return self.error("index-map", lambda.range(), message, "give the index another name");
        }
        match IndexMap::new(vars, domain, outputs, separators) {
            Ok(map) => Some(map),
            Err(error) => {
                let help = "the lambda has one parameter for each axis of the shape, and gives a list of integers";
                self.error("index-map", lambda.range(), error.to_string(), help)
            }
        }
    }

    /// Binds the parameters of a lambda to variables, and returns the variables and the domain. `*indices` takes all
    /// indices that have no parameter of their own.
    fn lambda_params(
        &mut self,
        lambda: &'a ast::ExprLambda,
        domain: Option<Vec<Expr>>,
    ) -> Option<(Vec<Var>, Vec<Expr>)> {
        let params = lambda.parameters.as_deref();
        if let Some(keyword) = params.and_then(|params| params.kwarg.as_deref()) {
            return self.error("index-map", keyword.range(), "`**` is not supported here", "name the indices");
        }
        let named: Vec<_> =
            params.into_iter().flat_map(|params| params.posonlyargs.iter().chain(&params.args)).collect();
        let starred = params.and_then(|params| params.vararg.as_deref());
        let names: Vec<String> = named.iter().map(|param| param.parameter.name.to_string()).collect();
        let Some(domain) = domain.or_else(|| {
            let extents = names.iter().map(|name| self.symbols.get(&format!("{name}_extent")).into());
            starred.is_none().then(|| extents.collect())
        }) else {
            return self.error("index-map", lambda.range(), "the number of indices is not known", "state the shape");
        };
        let rest = domain.len().checked_sub(names.len()).filter(|rest| *rest == 0 || starred.is_some());
        let Some(rest) = rest else {
            let message = format!("the map takes {} indices, but the shape has {} axes", names.len(), domain.len());
            return self.error("index-map", lambda.range(), message, "give one parameter for each axis");
        };
        // The indices behind `*indices` need names that are distinct from all others, symbolic extents among them, so that
        // the map can be printed and read again.
        let taken = |name: &String| names.contains(name) || self.symbols.0.iter().any(|symbol| symbol.name() == name);
        let unnamed = |prefix: &str| (0..rest).map(|at| format!("{prefix}{}", names.len() + at)).collect::<Vec<_>>();
        let mut prefix = "i".to_owned();
        while unnamed(&prefix).iter().any(taken) {
            prefix.push('_');
        }
        let all = names.iter().cloned().chain(unnamed(&prefix));
        let vars: Vec<Var> = all.zip(&domain).map(|(name, extent)| Var::new(name, extent.dtype())).collect();
        for (position, name) in names.iter().enumerate() {
            if names[..position].contains(name) {
                return self.error(
                    "index-map",
                    lambda.range(),
                    format!("parameter `{name}` appears twice"),
                    "rename one",
                );
            }
            self.bind(name.as_str(), Binding::Value(Expr::from(&vars[position])));
        }
        if let Some(starred) = starred {
            let rest = vars[names.len()..].iter().map(Expr::from).collect();
            self.bind(starred.name.as_str(), Binding::Indices(rest));
        }
        Some((vars, domain))
    }

    /// Reads the outputs, and the positions of the separators among them.
    fn outputs(&mut self, body: &'a ast::Expr) -> Option<(Vec<Expr>, Vec<usize>)> {
        let parts = sequence(body).unwrap_or(std::slice::from_ref(body));
        let (mut outputs, mut separators) = (Vec::new(), Vec::new());
        for part in parts {
            if is_separator(part) {
                separators.push(outputs.len());
            } else if let Some(indices) = self.spread_indices(part) {
                outputs.extend(indices?);
            } else {
                outputs.push(self.expr(part)?);
            }
        }
        Some((outputs, separators))
    }

    /// Reads a part of the outputs that stands for several indices: `*indices`, `*indices[:-1]`, `indices`, or a
    /// nested list. Returns `None` if `part` is a single expression, and `Some(None)` after reporting an error.
    #[expect(clippy::option_option, reason = "whether it is a sequence at all, and then whether it could be read")]
    fn spread_indices(&mut self, part: &'a ast::Expr) -> Option<Option<Vec<Expr>>> {
        match part {
            // Without a sequence inside, `*` has nothing to unpack.
            ast::Expr::Starred(starred) => {
                let inner = self.spread_indices(&starred.value);
                Some(inner.unwrap_or_else(|| {
                    self.error(
                        "index-map",
                        part.range(),
                        "only `*indices` and its slices are unpacked",
                        "`*indices[:-1]`",
                    )
                }))
            }
            // The parameter `*indices` stands for all its indices; any other name is a single expression.
            ast::Expr::Name(name) => match self.lookup(&name.id) {
                Some(Binding::Indices(indices)) => Some(Some(indices.clone())),
                _ => None,
            },
            ast::Expr::List(_) | ast::Expr::Tuple(_) => Some(self.exprs(sequence(part)?)),
            ast::Expr::Subscript(subscript) => {
                let (ast::Expr::Name(name), ast::Expr::Slice(slice)) = (&*subscript.value, &*subscript.slice) else {
                    return None;
                };
                let Some(Binding::Indices(indices)) = self.lookup(&name.id).cloned() else { return None };
                Some(self.sliced_indices(&indices, slice))
            }
            _ => None,
        }
    }

    /// Returns `indices[start:end]`. As in Python, a negative bound counts from the end and bounds are clamped.
    fn sliced_indices(&mut self, indices: &[Expr], slice: &'a ast::ExprSlice) -> Option<Vec<Expr>> {
        let rank = i128::try_from(indices.len()).ok()?;
        let mut bound = |bound: &'a Option<Box<ast::Expr>>, default: i128, range: TextRange| {
            let Some(bound) = bound else { return Some(default) };
            match self.expr(bound)?.as_const_int() {
                Some(at) => Some((if at < 0 { at + rank } else { at }).clamp(0, rank)),
                None => self.error("index-map", range, "the ends of a slice are constants", "`*indices[:-1]`"),
            }
        };
        let (start, end) = (bound(&slice.lower, 0, slice.range())?, bound(&slice.upper, rank, slice.range())?);
        if slice.step.is_some() {
            return self.error("index-map", slice.range(), "a slice has no step here", "name the indices one by one");
        }
        let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        Some(indices.get(start..end.max(start)).unwrap_or_default().to_vec())
    }
}

/// Returns whether an expression is `AXIS_SEPARATOR`, with or without a module before it.
fn is_separator(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Name(name) => name.id.as_str() == SEPARATOR,
        ast::Expr::Attribute(attribute) => attribute.attr.as_str() == SEPARATOR,
        _ => false,
    }
}

/// The largest number of points of a domain that is enumerated to find a physical shape.
const ENUMERABLE: i128 = 1 << 16;

/// Returns the physical shape of a map, which is the domain of the map that follows it in a `layout_transform_map`.
///
/// The shape is exact: derived for outputs of the forms `i`, `i // k` and `i % k`, and enumerated for small constant
/// domains. Returns `None` for all other maps; the program then has to state the shape.
pub(crate) fn physical_shape(map: &IndexMap) -> Option<Vec<Expr>> {
    let derived: Option<Vec<Expr>> =
        map.outputs().iter().map(|output| quotient_or_remainder_extent(map, output)).collect();
    derived.or_else(|| enumerated_shape(map))
}

/// Returns the extent of an output of the form `i`, `i // k` or `i % k` with a positive constant `k`.
fn quotient_or_remainder_extent(map: &IndexMap, output: &Expr) -> Option<Expr> {
    let extent = |expr: &Expr| {
        let Expr::Var(var) = expr else { return None };
        map.vars().iter().position(|known| known == var).map(|axis| map.domain()[axis].clone())
    };
    match output {
        Expr::Var(_) => extent(output),
        Expr::Binary(op @ (BinaryOp::FloorDiv | BinaryOp::FloorMod), index, divisor) => {
            let (whole, k) = (extent(index)?, divisor.as_const_int().filter(|k| (1..1 << 31).contains(k))?);
            let ty = whole.dtype().scalar;
            match (whole.as_const_int(), op) {
                (Some(whole), BinaryOp::FloorDiv) => Expr::int_of((whole + k - 1) / k, ty),
                (Some(whole), _) => Expr::int_of(whole.min(k), ty),
                (None, BinaryOp::FloorDiv) => Some((whole + Expr::int_of(k - 1, ty)?).floor_div(Expr::int_of(k, ty)?)),
                (None, _) => Expr::int_of(k, ty),
            }
        }
        _ => None,
    }
}

/// Returns the largest index of each output plus 1, over all points of a constant domain.
fn enumerated_shape(map: &IndexMap) -> Option<Vec<Expr>> {
    let extents: Option<Vec<i128>> = map.domain().iter().map(Expr::as_const_int).collect();
    let extents = extents?;
    let points = extents.iter().try_fold(1i128, |size, extent| size.checked_mul(*extent))?;
    if !(1..=ENUMERABLE).contains(&points) {
        return None;
    }
    let mut largest = vec![-1i128; map.outputs().len()];
    for point in 0..points {
        let mut rest = point;
        let mut index = vec![0; extents.len()];
        for (place, extent) in index.iter_mut().zip(&extents).rev() {
            (*place, rest) = (rest % extent, rest / extent);
        }
        let physical = map.eval(&index, &Bindings::default()).ok()?;
        largest.iter_mut().zip(physical).for_each(|(most, at)| *most = at.max(*most));
    }
    largest.into_iter().map(|most| i64::try_from(most + 1).ok().map(Expr::int)).collect()
}

/// Returns whether the text of an expression contains a call of `function`.
fn contains_call(text: &str, function: &str) -> bool {
    let is_word = |before: char| before.is_alphanumeric() || before == '_';
    text.match_indices(function).any(|(at, _)| {
        let (before, after) = (text.get(..at), text.get(at + function.len()..));
        after.is_some_and(|after| after.starts_with('(')) && !before.is_some_and(|before| before.ends_with(is_word))
    })
}
