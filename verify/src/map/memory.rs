//! What was found about a map is remembered for later claims about the same map: programs have many buffers of one layout.
//!
//! ```text
//! s[A1].transform_layout(lambda i, k: [i, k // 4, k % 4])     the indices that reach the end of each axis are searched for
//! s[A2].transform_layout(lambda i, k: [i, k // 4, k % 4])     those of A1 are proved to
//! ```
//!
//! Only guesses are remembered: an index that may reach the end of an axis, which is proved like any other, and that small shapes refuted
//! nothing, after which another tier has to prove the claim. A claim that is taken for another one loses time or a smaller counterexample.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Expr, IndexMap, Var};

use super::MapClaim;
use super::witness::Places;
use crate::obligation::Obligation;

/// Most entries of each kind. What is found after that is not remembered.
const ENTRIES: usize = 1 << 12;

/// What was found about maps, by their text.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Whether nothing is remembered.
    is_off: bool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    unrefuted: HashSet<(String, Obligation)>,
    reaching: HashMap<(String, usize), Places>,
}

impl Memory {
    /// A memory that remembers nothing.
    pub(crate) fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// Whether small shapes were tried for a claim with this text, and refuted nothing.
    pub(super) fn is_unrefuted(&self, text: &str, obligation: Obligation) -> bool {
        self.with(|known| known.unrefuted.contains(&(text.to_owned(), obligation)))
    }

    /// Remembers that small shapes refuted nothing.
    pub(super) fn remember_unrefuted(&self, text: &str, obligation: Obligation) {
        self.with(|known| {
            if !self.is_off && known.unrefuted.len() < ENTRIES {
                known.unrefuted.insert((text.to_owned(), obligation));
            }
        });
    }

    /// The indices that reached the end of an axis for a claim with this text.
    pub(super) fn reaching(&self, text: &str, axis: usize) -> Option<Places> {
        self.with(|known| known.reaching.get(&(text.to_owned(), axis)).cloned())
    }

    /// Remembers indices that reach the end of an axis.
    pub(super) fn remember_reaching(&self, text: &str, axis: usize, places: &Places) {
        self.with(|known| {
            if !self.is_off && known.reaching.len() < ENTRIES {
                known.reaching.insert((text.to_owned(), axis), places.clone());
            }
        });
    }

    fn with<T>(&self, run: impl FnOnce(&mut Known) -> T) -> T {
        run(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The text of a claim, in which variables are numbered, so that the names that a buffer has for its indices do not matter.
pub(super) fn text(claim: &MapClaim<'_>, symbols: &[Var]) -> String {
    let own = |map: &IndexMap| map.vars().to_vec();
    let inverse = claim.inverse.map(|inverse| inverse.vars.clone()).unwrap_or_default();
    let vars = [own(claim.map), symbols.to_vec(), inverse, claim.meaning.map(own).unwrap_or_default()].concat();
    let numbered = |(number, var): (usize, &Var)| Var::new(format!("v{number}"), var.dtype());
    let numbered: Vec<Var> = vars.iter().enumerate().map(numbered).collect();
    let renames = Substitution::new(&vars, numbered.iter().map(Expr::from));
    let of = |exprs: &[Expr]| exprs.iter().map(|expr| renames.apply(expr).to_string()).collect::<Vec<_>>().join(", ");
    let types: Vec<String> = vars.iter().map(|var| var.dtype().to_string()).collect();
    let scalars: Vec<usize> = (0..vars.len()).filter(|&at| claim.scalars.contains(&vars[at])).collect();
    let parts = [
        types.join(", "),
        of(claim.map.domain()),
        of(claim.map.outputs()),
        of(claim.shape),
        of(claim.assumptions),
        of(&claim.predicate.cloned().into_iter().collect::<Vec<_>>()),
        claim.inverse.map_or_else(String::new, |inverse| of(&inverse.outputs)),
        claim.inverse.map_or_else(String::new, |inverse| of(std::slice::from_ref(&inverse.padding))),
        claim.meaning.map_or_else(String::new, |meaning| of(meaning.outputs())),
        format!("{:?} {scalars:?}", claim.padded),
    ];
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::{Config, Judge};
    use crate::map::case::{Case, Shared};
    use crate::map::{decide, tight};
    use crate::verdict::Verdict;

    /// `lambda NAME: [NAME // 4, NAME % 4]` on `extent`.
    fn split(name: &str, extent: &Expr) -> IndexMap {
        let i = Var::index(name);
        let outputs = vec![Expr::from(&i).floor_div(Expr::int(4)), Expr::from(&i).floor_mod(Expr::int(4))];
        IndexMap::new(vec![i], vec![extent.clone()], outputs, Vec::new()).unwrap()
    }

    fn judge() -> Judge {
        Judge::new(Config { threads: 1, ..Config::default() }, tilewright_search::strategies()).unwrap()
    }

    fn blocks(extent: &Expr, more: i64) -> Expr {
        (extent.clone() + Expr::int(more)).floor_div(Expr::int(4))
    }

    #[test]
    fn names_of_indices_do_not_matter_and_extents_do() {
        let (n, m) = (Var::index("n"), Var::index("m"));
        let of = |name: &str, extent: &Var, more| {
            let extent = Expr::from(extent);
            let (map, shape) = (split(name, &extent), [blocks(&extent, more), Expr::int(4)]);
            let claim = MapClaim::new(&map, &shape);
            text(&claim, &claim.symbols())
        };
        assert_eq!(of("i", &n, 3), of("j", &n, 3));
        assert_eq!(of("i", &n, 3), of("i", &m, 3));
        assert_ne!(of("i", &n, 3), of("i", &n, 7));
    }

    #[test]
    fn what_is_remembered_of_a_map_is_a_guess() {
        let judge = judge();
        let extent = Expr::from(&Var::index("n"));
        let map = split("i", &extent);
        // The last block is never reached.
        let shape = [blocks(&extent, 7), Expr::int(1)];
        let claim = MapClaim::new(&map, &shape[..]).padded(&[1]);
        let text = text(&claim, &claim.symbols());
        for place in 0..4 {
            judge.memory.remember_reaching(&text, 0, &vec![vec![place]]);
            judge.memory.remember_unrefuted(&text, Obligation::Tight);
            assert!(!decide(&judge, Obligation::Tight, claim).0.is_proved());
        }
        // A place that there is no value at is passed over.
        judge.memory.remember_reaching(&text, 0, &vec![vec![1000]]);
        assert!(!decide(&judge, Obligation::Tight, claim).0.is_proved());
    }

    #[test]
    fn an_index_that_reached_the_end_is_tried_first() {
        let judge = judge();
        let extent = Expr::from(&Var::index("n"));
        let (map, shape) = (split("i", &extent), [blocks(&extent, 3)]);
        let shape = [shape[0].clone(), Expr::int(4)];
        let claim = MapClaim::new(&map, &shape).padded(&[1]);
        let shared = Shared::new(claim);
        let (id, loops, _) = tight::OBLIGATION;
        let case = Case { judge: &judge, claim, obligation: id, loops, shared: &shared };
        let decided = tight::by_z3(&case);
        assert!(matches!(decided, Some((Verdict::Proved(_), _))));
        let known = judge.memory.reaching(&text(&claim, &claim.symbols()), 0);
        assert_eq!(known, Some(vec![vec![0]]));
        // The same claim with other names asks for nothing else.
        let other = split("j", &extent);
        let again = MapClaim::new(&other, &shape).padded(&[1]);
        assert_eq!(judge.memory.reaching(&text(&again, &again.symbols()), 0), known);
        assert!(decide(&judge, Obligation::Tight, again).0.is_proved());
    }
}
