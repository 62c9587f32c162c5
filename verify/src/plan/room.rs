//! Obligations plan-fits and plan-type: the size a tensor needs against the region it has, one tensor at a time.
//!
//! The size of a tensor, and the division of a texture's axes into rows and columns, are stated here independently of the
//! planner:
//!
//! | scope | rows | columns | channels |
//! |---|---|---|---|
//! | `texture` (C0) | all axes but the last two, or those before the separator | the others | the last axis, 4 |
//! | `texture:weight` (C1) | the first axis | the others | the last axis, 4 |
//! | `texture:nhwc` | the first two axes | the others | the last axis, 4 |

use tilewright_ir::{DataType, GraphTensor, Region, Room, ScalarType, Scope};

use super::graph::Planned;
use crate::verdict::Counterexample;

/// A message about a tensor that does not fit, and the values that show it.
type Misfit = (String, Vec<(&'static str, i128)>);

/// The counterexample of a tensor whose region does not have the size that it needs, or is not inside its pool.
pub(super) fn misfit(planned: &Planned<'_>, tensor: usize) -> Option<Counterexample> {
    let place = planned.place(tensor);
    let found = room(&planned.graph.tensors[tensor])
        .map_err(|reason| (reason, Vec::new()))
        .and_then(|room| is_exactly(room, place.region))
        .and_then(|()| is_inside(place.region, planned.plan.pools[place.pool].room));
    found.err().map(|found| refuted(planned, tensor, found))
}

/// The counterexample of a tensor that differs from its pool in scope or element type, or is not aligned.
pub(super) fn mismatch(planned: &Planned<'_>, tensor: usize) -> Option<Counterexample> {
    let place = planned.place(tensor);
    let (wanted, pool) = (&planned.graph.tensors[tensor], &planned.plan.pools[place.pool]);
    let found = if wanted.scope != pool.scope {
        (format!("is in scope `{}`, its pool in `{}`", wanted.scope, pool.scope), Vec::new())
    } else if wanted.scope.is_texture() && wanted.dtype != pool.dtype {
        (format!("holds {}, its pool {}", wanted.dtype, pool.dtype), Vec::new())
    } else if let Region::Bytes { offset, .. } = place.region
        && !offset.is_multiple_of(alignment(wanted.dtype))
    {
        let needed = alignment(wanted.dtype);
        let text = format!("holds {} and begins at a byte that {needed} does not divide", wanted.dtype);
        (text, vec![("byte", i128::from(offset))])
    } else {
        return None;
    };
    Some(refuted(planned, tensor, found))
}

/// The counterexample of an impossible pool: textures are measured in texels of four channels, global memory in bytes, and
/// there are no other pools.
pub(super) fn no_pool(planned: &Planned<'_>, number: usize) -> Option<Counterexample> {
    let pool = &planned.plan.pools[number];
    let text = match (pool.scope, pool.room) {
        (Scope::Global, Room::Bytes(_)) => return None,
        (scope, Room::Texels { .. }) if scope.is_texture() => {
            if has_channels_of(pool.dtype) {
                return None;
            }
            format!("holds {}, which no channel of a texture does", pool.dtype)
        }
        (scope, Room::Texels { .. }) => format!("is in scope `{scope}` and measured in texels"),
        (scope, Room::Bytes(_)) => format!("is in scope `{scope}` and measured in bytes"),
    };
    let assignments = vec![("pool".to_owned(), i128::try_from(number).unwrap_or(i128::MAX))];
    Some(Counterexample { text: format!("a pool {text}"), assignments, ..Counterexample::default() })
}

/// The counterexample of a texture that the device cannot make, if the plan is for one: it is above the limits, or its width is no
/// multiple of the pitch.
pub(super) fn against_rules(planned: &Planned<'_>, number: usize) -> Option<Counterexample> {
    let (rules, pool) = (planned.rules?, &planned.plan.pools[number]);
    let Room::Texels { width, height } = pool.room else { return None };
    let text = if width > rules.limits.width || height > rules.limits.height {
        format!("is {width} wide and {height} high, the limits are {}", rules.limits)
    } else if rules.pitch == 0 || width % rules.pitch != 0 {
        format!("is {width} wide, which the pitch of {} texels does not divide", rules.pitch)
    } else {
        return None;
    };
    let at = |name: &str, value: i128| (name.to_owned(), value);
    let pool = i128::try_from(number).unwrap_or(i128::MAX);
    let assignments = vec![at("pool", pool), at("width", width.into()), at("height", height.into())];
    Some(Counterexample { text: format!("a texture {text}"), assignments, ..Counterexample::default() })
}

/// The counterexample of a misfit.
fn refuted(planned: &Planned<'_>, tensor: usize, (text, values): Misfit) -> Counterexample {
    let pool = i128::try_from(planned.place(tensor).pool).unwrap_or(i128::MAX);
    let values = [("pool", pool)].into_iter().chain(values);
    let assignments = values.map(|(name, value)| (name.to_owned(), value)).collect();
    Counterexample { text: format!("`{}` {text}", planned.name(tensor)), assignments, ..Counterexample::default() }
}

/// The size of a tensor.
///
/// # Errors
/// No pool can hold the tensor: its separators or scope are invalid, or it is too large.
fn room(tensor: &GraphTensor) -> Result<Room, String> {
    let shape = tensor.shape.as_slice();
    let separators = tensor.axis_separators.as_slice();
    if !(separators.iter().all(|&cut| 0 < cut && cut < shape.len()) && separators.is_sorted_by(|a, b| a < b)) {
        return Err(format!("has the axis separators {separators:?}, which do not cut {} axes", shape.len()));
    }
    if let Some(extent) = shape.iter().find(|extent| i64::try_from(**extent).is_err()) {
        return Err(format!("has the extent {extent}, above 2^63 - 1"));
    }
    let too_large = || "is larger than 2^63 - 1".to_owned();
    if tensor.scope == Scope::Global {
        let bytes = u128::from(size(shape).ok_or_else(too_large)?) * u128::from(tensor.dtype.bytes());
        return u64::try_from(bytes).map(Room::Bytes).map_err(|_| too_large());
    }
    let rows = rows(tensor)?;
    let (height, width) = (size(&shape[..rows]), size(&shape[rows..shape.len() - 1]));
    match (width, height) {
        (Some(width), Some(height)) => Ok(Room::Texels { width, height }),
        _ => Err(too_large()),
    }
}

/// The number of axes that form the rows of a texture.
///
/// # Errors
/// The tensor is not a valid texture of its scope.
fn rows(tensor: &GraphTensor) -> Result<usize, String> {
    let (rank, own) = (tensor.shape.len(), tensor.axis_separators.as_slice());
    let (least, usual) = match tensor.scope {
        Scope::Texture => (3, rank.saturating_sub(2)),
        Scope::TextureWeight => (3, 1),
        Scope::TextureNhwc => (4, 2),
        Scope::Global | Scope::Shared | Scope::Local => {
            return Err(format!("is in scope `{}`, as no pool is", tensor.scope));
        }
    };
    if rank < least {
        return Err(format!("has {rank} axes, a texture in scope `{}` at least {least}", tensor.scope));
    }
    if tensor.shape[rank - 1] != 4 {
        return Err(format!("has {} channels, a texel has 4", tensor.shape[rank - 1]));
    }
    if !has_channels_of(tensor.dtype) {
        return Err(format!("holds {}, which no channel of a texture does", tensor.dtype));
    }
    // Separators must be the usual ones of the scope, except in `texture`, whose rows may end anywhere. A second
    // separator may only cut off the channels.
    match own {
        [] => Ok(usual),
        [columns] | [columns, _] if *columns == rank - 1 => Err(format!("has no columns: axis separators {own:?}")),
        [_, channels] if *channels != rank - 1 => Err(format!("has its channels cut by the axis separators {own:?}")),
        [columns] | [columns, _] if tensor.scope == Scope::Texture || *columns == usual => Ok(*columns),
        _ => Err(format!("has the axis separators {own:?}, which are not those of scope `{}`", tensor.scope)),
    }
}

/// The product of extents, if it is at most 2^63 - 1. It is 0 if some extent is 0, however large the others are.
fn size(extents: &[u64]) -> Option<u64> {
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1_u64, |size, &extent| size.checked_mul(extent)).filter(|&size| i64::try_from(size).is_ok())
}

/// Whether a texture's channels can have this element type.
fn has_channels_of(dtype: DataType) -> bool {
    use ScalarType::{Float16, Float32, Int8, Int16, Int32, UInt8, UInt16, UInt32};
    dtype.lanes == 1 && matches!(dtype.scalar, Float16 | Float32 | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32)
}

/// The alignment of an element in bytes: its size; a vector of 3 lanes is aligned like one of 4, as in OpenCL C.
fn alignment(dtype: DataType) -> u64 {
    dtype.bytes().max(1).next_power_of_two()
}

/// Checks that a region has exactly the needed size.
fn is_exactly(room: Room, region: Region) -> Result<(), Misfit> {
    match (room, region) {
        (Room::Bytes(needed), Region::Bytes { size, .. }) if needed == size => Ok(()),
        (Room::Texels { width, height }, Region::Texels { width: w, height: h, .. }) if [width, height] == [w, h] => {
            Ok(())
        }
        _ => Err((format!("needs {}, the plan gives it {}", describe(room), describe(room_of(region))), Vec::new())),
    }
}

/// The size of a region.
fn room_of(region: Region) -> Room {
    match region {
        Region::Bytes { size, .. } => Room::Bytes(size),
        Region::Texels { width, height, .. } => Room::Texels { width, height },
    }
}

/// A size as text.
fn describe(room: Room) -> String {
    match room {
        Room::Bytes(bytes) => format!("{bytes} bytes"),
        Room::Texels { width, height } => format!("{width} columns and {height} rows"),
    }
}

/// Checks that a region lies inside its pool.
fn is_inside(region: Region, pool: Room) -> Result<(), Misfit> {
    let ends = |start: u64, size: u64, limit: u64| u128::from(start) + u128::from(size) <= u128::from(limit);
    // The last byte or texel of the region is outside; for an empty region it is the first position.
    let last = |start: u64, size: u64| i128::from(start) + i128::from(size.saturating_sub(1));
    let (outside, values) = match (region, pool) {
        (Region::Bytes { offset, size }, Room::Bytes(bytes)) => {
            (!ends(offset, size, bytes), vec![("byte", last(offset, size))])
        }
        (Region::Texels { x, y, width, height }, Room::Texels { width: columns, height: rows }) => {
            let values = vec![("column", last(x, width)), ("row", last(y, height))];
            (!(ends(x, width, columns) && ends(y, height, rows)), values)
        }
        _ => return Err((format!("lies in a pool of {}, which is of another kind", describe(pool)), Vec::new())),
    };
    if outside { Err((format!("leaves its pool of {}", describe(pool)), values)) } else { Ok(()) }
}
