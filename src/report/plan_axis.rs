//! The direction of a pool that is drawn from top to bottom.
//!
//! The picture of a plan has time from left to right, so only one direction of memory can be drawn. For buffers it is
//! the byte offset. A texture has two: rows are drawn if no two tensors that are alive at once overlap in rows, else
//! columns under the same condition, else each tensor gets a lane of its own.

use super::plan::{PlaceRow, PoolRow, TensorRow};

/// A part of the height of a pool, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Extent {
    pub(super) start: f64,
    pub(super) size: f64,
}

/// The quantity that is drawn from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    /// Byte offsets of a pool of bytes.
    Bytes,
    /// Rows of a texture.
    Rows,
    /// Columns of a texture.
    Columns,
    /// The lane of each tensor, and how many there are.
    Lanes(Vec<usize>, usize),
}

/// Most tensors of a pool that are compared with each other; the comparison takes quadratic time.
const MAX_COMPARED: usize = 2000;

impl Axis {
    /// The axis of a pool with these tensors.
    pub(super) fn of(pool: &PoolRow, rows: &[&TensorRow]) -> Self {
        if pool.shape.len() == 1 {
            return Self::Bytes;
        }
        if rows.len() <= MAX_COMPARED {
            let apart = |range: fn(&TensorRow) -> (u64, u64)| {
                let pairs =
                    rows.iter().enumerate().flat_map(|(at, one)| rows[..at].iter().map(move |other| (one, other)));
                let mut alive = pairs.filter(|(one, other)| one.first <= other.last && other.first <= one.last);
                alive.all(|(one, other)| {
                    let ((start, end), (from, to)) = (range(one), range(other));
                    end <= from || to <= start
                })
            };
            if apart(|row| texels(row).1) {
                return Self::Rows;
            }
            if apart(|row| texels(row).0) {
                return Self::Columns;
            }
        }
        // Greedy interval colouring: in the order of their first steps, each tensor takes the first lane that is free.
        // This needs as few lanes as possible, unless there are more than MAX_COMPARED.
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&at| rows[at].first);
        let (mut lanes, mut ends) = (vec![0; rows.len()], Vec::<usize>::new());
        for at in order {
            let free = ends.iter().take(MAX_COMPARED).position(|&end| end < rows[at].first);
            let lane = free.unwrap_or_else(|| {
                ends.push(0);
                ends.len() - 1
            });
            ends[lane] = rows[at].last;
            lanes[at] = lane;
        }
        Self::Lanes(lanes, ends.len().max(1))
    }

    /// The name in the picture; bytes need none.
    pub(super) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Bytes => None,
            Self::Rows => Some("rows"),
            Self::Columns => Some("columns"),
            Self::Lanes(..) => Some("one each"),
        }
    }

    /// The extent of a tensor of the pool; `at` is its position among those given to [`Axis::of`].
    pub(super) fn extent(&self, at: usize, row: &TensorRow, pool: &PoolRow) -> Extent {
        let part = |(start, end): (u64, u64), whole: u64| {
            let start = fraction(start, whole);
            Extent { start, size: fraction(end, whole) - start }
        };
        let side = |axis: usize| pool.shape.get(axis).copied().unwrap_or(1);
        match (self, row.place) {
            (Self::Bytes, PlaceRow::Byte { offset }) => part((offset, offset.saturating_add(row.size)), side(0)),
            (Self::Columns, _) => part(texels(row).0, side(0)),
            (Self::Rows, _) | (Self::Bytes, PlaceRow::Texels { .. }) => part(texels(row).1, side(1)),
            (Self::Lanes(lanes, n), _) => {
                let lane = |lane: usize| fraction(lane.try_into().unwrap_or(0), (*n).try_into().unwrap_or(1));
                Extent { start: lane(lanes[at]), size: lane(1) }
            }
        }
    }
}

/// The columns and the rows of a tensor, each as start and end.
fn texels(row: &TensorRow) -> ((u64, u64), (u64, u64)) {
    match row.place {
        PlaceRow::Texels { x, y, width, height } => ((x, x.saturating_add(width)), (y, y.saturating_add(height))),
        PlaceRow::Byte { .. } => ((0, 0), (0, 0)),
    }
}

/// `part / whole`, at most 1, so that a tensor that leaves its pool (a wrong plan) is drawn up to its end.
fn fraction(part: u64, whole: u64) -> f64 {
    let scaled = u128::from(part.min(whole)) * (1 << 24) / u128::from(whole.max(1));
    u32::try_from(scaled).map_or(1.0, |scaled| f64::from(scaled) / 16_777_216.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::TensorRole;

    fn row(x: u64, y: u64, first: usize, last: usize) -> TensorRow {
        TensorRow {
            name: "t".into(),
            storage_id: 0,
            scope: "texture",
            place: PlaceRow::Texels { x, y, width: 3, height: 5 },
            first,
            last,
            what: String::new(),
            role: TensorRole::Intermediate,
            is_view: false,
            in_place_of: None,
            size: 0,
        }
    }

    fn axis(rows: &[TensorRow]) -> Axis {
        let pool =
            PoolRow { storage_id: 0, scope: "texture", dtype: "float16".into(), shape: vec![6, 10, 4], bytes: 480 };
        Axis::of(&pool, &rows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_direction_that_keeps_tensors_apart_is_drawn() {
        assert_eq!(axis(&[row(0, 0, 0, 1), row(0, 5, 1, 2), row(0, 0, 2, 2)]), Axis::Rows);
        assert_eq!(axis(&[row(0, 0, 0, 1), row(3, 0, 1, 2), row(0, 0, 2, 2)]), Axis::Columns);
        let both = [row(0, 0, 0, 1), row(3, 0, 1, 2), row(3, 5, 1, 3), row(0, 0, 2, 3)];
        assert_eq!(axis(&both), Axis::Lanes(vec![0, 1, 2, 0], 3));
    }
}
