//! The steps of a path, shared between all paths that begin alike.
//!
//! A path is cloned for every statement and every goal. As a list that grows at its end, with each step pointing to the one
//! before, a clone is one increment, and paths that have a beginning in common hold it once.
//!
//! ```text
//! path of `A[i] = 0`     Loop(i) <- Guard(i < m)
//! path of `B[i] = 1`     Loop(i) <- Guard(i >= m)          Loop(i) is held once
//! ```

use std::fmt;
use std::sync::Arc;

use crate::path::Step;

/// A list of steps, outermost first. Cloning takes constant time.
#[derive(Clone, Default)]
pub struct Steps {
    last: Option<Arc<Link>>,
}

/// A step and those before it.
struct Link {
    /// The step.
    step: Step,
    /// How many steps there are, this one included.
    len: usize,
    /// The steps before it.
    before: Steps,
}

impl Steps {
    /// The number of steps.
    pub fn len(&self) -> usize {
        self.last.as_ref().map_or(0, |link| link.len)
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The innermost step.
    pub fn last(&self) -> Option<&Step> {
        self.last.as_ref().map(|link| &link.step)
    }

    /// Adds a step at the end.
    pub fn push(&mut self, step: Step) {
        let before = std::mem::take(self);
        self.last = Some(Arc::new(Link { step, len: before.len() + 1, before }));
    }

    /// Removes the innermost step.
    pub fn pop(&mut self) {
        if let Some(link) = self.last.take() {
            *self = link.before.clone();
        }
    }

    /// Removes the innermost steps until `len` are left, if there are more.
    pub fn truncate(&mut self, len: usize) {
        while self.len() > len {
            self.pop();
        }
    }

    /// Whether the other list begins with these steps.
    pub fn is_beginning_of(&self, other: &Self) -> bool {
        let mut beginning = other.clone();
        beginning.truncate(self.len());
        *self == beginning
    }

    /// The steps, innermost first.
    fn backwards(&self) -> impl Iterator<Item = &Step> {
        std::iter::successors(self.last.as_ref(), |link| link.before.last.as_ref()).map(|link| &link.step)
    }

    /// The steps, outermost first.
    pub fn iter(&self) -> std::vec::IntoIter<&Step> {
        let mut steps: Vec<&Step> = Vec::with_capacity(self.len());
        steps.extend(self.backwards());
        steps.reverse();
        steps.into_iter()
    }

    /// Whether both end with one object in memory, or are empty: then they are the same steps.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.last, &other.last) {
            (Some(link), Some(other)) => Arc::ptr_eq(link, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl PartialEq for Steps {
    fn eq(&self, other: &Self) -> bool {
        let (mut left, mut right) = (self, other);
        if left.len() != right.len() {
            return false;
        }
        while !left.is_same(right) {
            match (&left.last, &right.last) {
                (Some(link), Some(other)) if link.step == other.step => (left, right) = (&link.before, &other.before),
                _ => return false,
            }
        }
        true
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        // A loop, because dropping a long list recursively could exhaust the stack.
        let mut next = self.last.take();
        while let Some(mut link) = next.and_then(Arc::into_inner) {
            next = link.before.last.take();
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Extend<Step> for Steps {
    fn extend<I: IntoIterator<Item = Step>>(&mut self, steps: I) {
        steps.into_iter().for_each(|step| self.push(step));
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        let mut list = Self::default();
        list.extend(steps);
        list
    }
}

impl From<Vec<Step>> for Steps {
    fn from(steps: Vec<Step>) -> Self {
        steps.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Steps {
    type Item = &'a Step;
    type IntoIter = std::vec::IntoIter<&'a Step>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::Expr;

    fn guard(value: i64) -> Step {
        Step::Guard(Expr::int(value), true)
    }

    #[test]
    fn a_clone_is_not_changed_by_what_is_added_later() {
        let mut steps: Steps = (0..3).map(guard).collect();
        let kept = steps.clone();
        steps.pop();
        steps.push(guard(7));
        assert_eq!(kept.iter().cloned().collect::<Vec<_>>(), [guard(0), guard(1), guard(2)]);
        assert_eq!(steps.iter().cloned().collect::<Vec<_>>(), [guard(0), guard(1), guard(7)]);
        assert!(steps != kept && steps.last() == Some(&guard(7)));
        steps.truncate(1);
        assert_eq!((steps.len(), &steps), (1, &Steps::from(vec![guard(0)])));
        steps.truncate(5);
        assert_eq!(steps.len(), 1);
        assert!(steps.is_beginning_of(&kept) && kept.is_beginning_of(&kept) && !kept.is_beginning_of(&steps));
        assert!(!Steps::from(vec![guard(1)]).is_beginning_of(&kept));
    }

    #[test]
    fn a_long_list_is_dropped_without_recursion() {
        let mut steps = Steps::default();
        let mut prefixes = Vec::new();
        for value in 0..1_000_000 {
            if value % 100_000 == 0 {
                prefixes.push(steps.clone());
            }
            steps.push(guard(value));
        }
        assert_eq!(steps.len(), 1_000_000);
        drop(steps);
        assert_eq!(prefixes.last().map(Steps::len), Some(900_000));
    }
}
