//! Extents in quotes.
//!
//! Python evaluates the annotations of parameters before the function binds its names, so TVM quotes an extent where its names
//! appear first: `A: T.Buffer(("n + 2", 4), "float32")`. Such a text is parsed in place, before the program is read. A text that is
//! no expression, or a single name, stays a string: `buffer` reads the name, or reports the text.

use ruff_python_ast as ast;
use ruff_python_parser::parse_expression_range;
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::func::is_prim_func;

/// Replaces quoted extents by the expressions that they contain, in the parameters of all functions of a block, also inside
/// classes. `source` is the text that the block was parsed from.
pub(super) fn unquote_extents(body: &mut [ast::Stmt], source: &str) {
    for stmt in body {
        match stmt {
            ast::Stmt::FunctionDef(def) if is_prim_func(def) => unquote_params(&mut def.parameters, source),
            ast::Stmt::ClassDef(class) => unquote_extents(&mut class.body, source),
            _ => {}
        }
    }
}

/// Replaces the quoted extents of the parameters `A: T.Buffer(shape, ...)`.
fn unquote_params(params: &mut ast::Parameters, source: &str) {
    let all = params.posonlyargs.iter_mut().chain(&mut params.args).chain(&mut params.kwonlyargs);
    for annotation in all.filter_map(|param| param.parameter.annotation.as_deref_mut()) {
        let ast::Expr::Call(call) = annotation else { continue };
        let is_shape = |keyword: &&mut ast::Keyword| keyword.arg.as_ref().is_some_and(|name| name.as_str() == "shape");
        let named = call.arguments.keywords.iter_mut().find(is_shape).map(|keyword| &mut keyword.value);
        match call.arguments.args.first_mut().or(named) {
            Some(ast::Expr::Tuple(tuple)) => tuple.elts.iter_mut().for_each(|extent| unquote(extent, source)),
            Some(ast::Expr::List(list)) => list.elts.iter_mut().for_each(|extent| unquote(extent, source)),
            _ => {}
        }
    }
}

/// Replaces an extent by the expression in its quotes, if it is one.
fn unquote(extent: &mut ast::Expr, source: &str) {
    let ast::Expr::StringLiteral(literal) = &*extent else { return };
    let text = literal.value.to_str();
    let inner = literal.range();
    let one = TextSize::from(1);
    let (Some(start), Some(end)) = (inner.start().checked_add(one), inner.end().checked_sub(one)) else { return };
    // With a prefix, three quotes, escapes or several parts, places in the text are not places in the source.
    if start > end || source.get(start.to_usize()..end.to_usize()) != Some(text) {
        return;
    }
    // The first parser checks how deep the text nests, the second one knows where it stands.
    let Ok(checked) = crate::source::parse_expression(text) else { return };
    if matches!(checked, ast::Expr::Name(_)) {
        return;
    }
    if let Ok(parsed) = parse_expression_range(source, TextRange::new(start, end)) {
        *extent = parsed.into_expr();
    }
}
