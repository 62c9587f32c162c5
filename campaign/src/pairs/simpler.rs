//! Simpler recipes: a change less, a plain part in place of another one, a smaller loop.

use super::recipe::{Axis, Base, Index, Kind, Name, Recipe, Rows, Value, View};
use crate::case::{smaller, without_one};

/// Simpler recipes, the most simplified first.
pub(super) fn simpler(recipe: &Recipe) -> Vec<Recipe> {
    let mut found: Vec<Recipe> = Vec::new();
    found.extend(without_one(&recipe.twists).into_iter().map(|twists| Recipe { twists, ..recipe.clone() }));
    found.extend(without_one(&recipe.both).into_iter().map(|both| Recipe { both, ..recipe.clone() }));
    found.extend(bases(&recipe.base).into_iter().map(|base| Recipe { base, ..recipe.clone() }));
    found
}

/// Simpler programs.
fn bases(base: &Base) -> Vec<Base> {
    let mut found = Vec::new();
    let mut plain = |change: &dyn Fn(&mut Base)| {
        let mut simpler = base.clone();
        change(&mut simpler);
        if simpler != *base {
            found.push(simpler);
        }
    };
    plain(&|base| base.premise = None);
    plain(&|base| base.request = None);
    plain(&|base| base.second = None);
    plain(&|base| base.huge = None);
    plain(&|base| base.guard = None);
    plain(&|base| base.view = View::Plain);
    plain(&|base| base.rows = Rows::Constant);
    plain(&|base| base.index = Index::Element);
    plain(&|base| base.value = Value::Copy);
    plain(&|base| base.name = Name::Outer);
    plain(&|base| base.outer.kind = Kind::Serial);
    plain(&|base| base.inner.kind = Kind::Serial);
    plain(&|base| base.outer.min = 0);
    plain(&|base| base.inner.min = 0);
    plain(&|base| base.integers = false);
    for extent in smaller(base.outer.extent) {
        found.push(Base { outer: Axis { extent, ..base.outer }, ..base.clone() });
    }
    for extent in smaller(base.inner.extent) {
        found.push(Base { inner: Axis { extent, ..base.inner }, ..base.clone() });
    }
    found
}
