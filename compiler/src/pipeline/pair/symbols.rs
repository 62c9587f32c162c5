//! Which integers of two functions correspond: extents, scalar parameters, and what is assumed of them.

use std::collections::HashMap;
use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Expr, IndexMap, PrimFunc, Var};

use super::super::assume::Assumption;

/// Returns the function with its integers replaced by those of `before` that they correspond to. Scalar parameters correspond
/// by position, because that is how a caller passes them. A symbol corresponds to the one with the same name, or else to the
/// one that stands at the same place of a parameter's shape. What has no counterpart keeps its own variable. Extents stay extents.
pub(super) fn rename_symbols(before: &PrimFunc, after: &PrimFunc) -> PrimFunc {
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
    // An integer that is an extent before is at least 1 in the same call, also if it stands only inside of products after.
    let (known, own) = (func.extents(), func.symbols());
    let shared = before.extents().into_iter().filter(|extent| own.contains(extent) && !known.contains(extent));
    func.attrs.extents.extend(shared);
    func
}

/// Returns what is assumed of the function before in terms of the function after. A condition is dropped if one of its integers
/// has no counterpart, which is sound: a proof without a premise also holds with it.
pub fn carried(assumed: &[Assumption], before: &PrimFunc, after: &PrimFunc) -> Vec<Assumption> {
    let pairs = corresponding_integers(before, after);
    let renaming = Substitution::new(pairs.iter().map(|(_, old)| old), pairs.iter().map(|(new, _)| Expr::from(new)));
    let has_counterpart = |var: &Var| pairs.iter().any(|(_, old)| old == var);
    let kept = assumed.iter().filter(|assumed| assumed.condition.vars().iter().all(has_counterpart));
    kept.map(|Assumption { text, condition }| Assumption { text: text.clone(), condition: renaming.apply(condition) })
        .collect()
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
pub(super) fn same_form(a: &Buffer, b: &Buffer) -> bool {
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
