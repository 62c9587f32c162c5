//! Draws pairs. Each pair has a theme: a kind of mistake that a judge could make about it.

use arbitrary::{Result, Unstructured};

use super::recipe::{
    Asserted, Axis, Base, Compare, Guard, How, Huge, Index, Kind, Name, Premise, Recipe, Request, Rows, Twist, Value,
    View,
};

/// All comparisons.
const COMPARISONS: [Compare; 5] = [Compare::Lt, Compare::Ge, Compare::Gt, Compare::Eq, Compare::Ne];

/// All layout requests.
const REQUESTS: [Request; 4] = [Request::Transposed, Request::Blocked, Request::Tiled, Request::TiledColumns];

/// Numbers of rows around the limits of types, of allocations and of images.
const SIZES: [i64; 9] =
    [16_383, 16_384, 16_385, 1 << 20, (1 << 31) - (1 << 16), (1 << 31) - 1, 1 << 31, (1 << 31) + 5, 1 << 33];

/// What a pair is about.
#[derive(Clone, Copy, Debug)]
enum Theme {
    /// Iterations that run at once.
    Race,
    /// Scalars in shapes, strides and offsets.
    Scalars,
    /// Scalar parameters that change places.
    Permuted,
    /// Premises that cannot hold together.
    Premises,
    /// Assertions about scalars, extents and loaded values, in the same words or in others.
    Assertions,
    /// Layout requests.
    Requests,
    /// Elements that overlap.
    Overlap,
    /// Textures that are written in part.
    Textures,
    /// Sums of floats.
    Sums,
    /// Loops over thread indices with different extents.
    Threads,
    /// Sizes that are too large to run.
    Sizes,
    /// Other forms of the same program.
    Equal,
    /// Values that are kept elsewhere.
    Storage,
    /// Iterations that become lanes.
    Vectors,
    /// One mistake.
    Mistake,
}

/// Draws a recipe: a plain program, the parts and the change that its theme is about, and equal forms: up to three of them
/// if the theme is about these, else one in a quarter of the pairs. In one pair out of six both programs get another form.
pub(super) fn recipe(u: &mut Unstructured<'_>) -> Result<Recipe> {
    let themes = [
        Theme::Race,
        Theme::Race,
        Theme::Scalars,
        Theme::Permuted,
        Theme::Premises,
        Theme::Premises,
        Theme::Assertions,
        Theme::Assertions,
        Theme::Requests,
        Theme::Overlap,
        Theme::Textures,
        Theme::Sums,
        Theme::Threads,
        Theme::Sizes,
        Theme::Equal,
        Theme::Equal,
        Theme::Equal,
        Theme::Storage,
        Theme::Storage,
        Theme::Storage,
        Theme::Vectors,
        Theme::Vectors,
        Theme::Mistake,
        Theme::Mistake,
    ];
    let seed = u.arbitrary::<u32>()?.into();
    let theme = *u.choose(&themes)?;
    let mut base = base(u)?;
    let mut twists = Vec::new();
    shape_for(theme, &mut base, u)?;
    if matches!(theme, Theme::Storage) {
        for _ in 0..u.int_in_range(1..=2)? {
            let how = elsewhere(u)?;
            twists.push(twist(how, u)?);
        }
    }
    if let Some(how) = change_for(theme, &base, u)? {
        twists.push(twist(how, u)?);
    }
    let n_equal = match theme {
        Theme::Equal => u.int_in_range(1..=3)?,
        _ => u8::from(u.ratio(1, 4)?),
    };
    for _ in 0..n_equal {
        let how = equal(u)?;
        twists.push(twist(how, u)?);
    }
    let mut both = Vec::new();
    if u.ratio(1, 6)? {
        let how = equal(u)?;
        both.push(twist(how, u)?);
    }
    Ok(Recipe { seed, base, both, twists })
}

/// A change at a place.
fn twist(how: How, u: &mut Unstructured<'_>) -> Result<Twist> {
    Ok(Twist { how, place: u.int_in_range(0..=7)?, by: u.int_in_range(-3..=3)? })
}

/// A change that never changes what a program computes.
fn equal(u: &mut Unstructured<'_>) -> Result<How> {
    let all = [
        How::Fuse,
        How::Split,
        How::Interchange,
        How::Shift,
        How::Widen,
        How::Tighten,
        How::Unit,
        How::Join,
        How::Nest,
        How::TrueGuard,
        How::DeadStore,
        How::Forward,
        How::Alias,
        How::Reorder,
        How::Peel,
        How::Bind,
        How::RegroupIntegers,
        How::Reword,
    ];
    u.choose(&all).copied()
}

/// Another place for values.
fn elsewhere(u: &mut Unstructured<'_>) -> Result<How> {
    u.choose(&[How::Register, How::Doubled, How::CopyInput, How::CopyRows, How::CopyOutput]).copied()
}

/// One mistake, or a change that is one in some programs only.
fn mistake(u: &mut Unstructured<'_>) -> Result<How> {
    Ok(match u.int_in_range(0..=9u8)? {
        0 | 1 => How::AddGuard(guard(u)?),
        2 => How::DropGuard,
        3 => How::WeakenGuard,
        4 => How::Extent,
        5 => How::Start,
        6 => How::AddToValue,
        7 => How::NegateDivisor,
        8 => How::Backwards,
        _ => How::Exchange,
    })
}

/// A guard.
fn guard(u: &mut Unstructured<'_>) -> Result<Guard> {
    let number = u.int_in_range(-2..=4)?;
    Ok(match u.int_in_range(0..=4u8)? {
        0 => Guard::Name(*u.choose(&COMPARISONS)?, 400 * number + 77),
        1 | 2 => Guard::Name(*u.choose(&COMPARISONS)?, number.min(2)),
        3 => Guard::Below(number),
        _ => Guard::Quotient(u.int_in_range(-3..=3)?, number),
    })
}

/// A program without peculiarities: few of its parts are not the plain ones.
fn base(u: &mut Unstructured<'_>) -> Result<Base> {
    let min = |u: &mut Unstructured<'_>| if u.ratio(1, 3)? { u.int_in_range(-3..=2) } else { Ok(0) };
    let outer = Axis { kind: Kind::Serial, min: min(u)?, extent: u.int_in_range(1..=4)? };
    let inner = Axis { kind: Kind::Serial, min: min(u)?, extent: u.int_in_range(2..=8)? };
    let names = [Name::Outer, Name::Scalar, Name::Bound, Name::Loaded, Name::Computed];
    let values = [
        Value::Copy,
        Value::Plus(u.int_in_range(-2..=2)?),
        Value::Divided(u.int_in_range(-3..=3)?),
        Value::Sum,
        Value::Accumulate,
        Value::Through,
    ];
    Ok(Base {
        outer,
        inner,
        integers: u.arbitrary()?,
        name: *u.choose(&names)?,
        guard: if u.ratio(1, 3)? { Some(guard(u)?) } else { None },
        index: if u.ratio(1, 6)? { *u.choose(&[Index::Column, Index::Row])? } else { Index::Element },
        value: *u.choose(&values)?,
        rows: *u.choose(&[Rows::Constant, Rows::Constant, Rows::Symbol])?,
        view: View::Plain,
        premise: None,
        request: None,
        second: None,
        huge: None,
    })
}

/// Gives a program the parts that its theme is about.
fn shape_for(theme: Theme, base: &mut Base, u: &mut Unstructured<'_>) -> Result<()> {
    match theme {
        Theme::Race => {
            base.inner.kind = *u.choose(&[Kind::Parallel, Kind::Vectorized, Kind::Thread, Kind::Block])?;
            base.index = match u.int_in_range(0..=3u8)? {
                0 | 1 => Index::Chosen(*u.choose(&COMPARISONS)?, u.int_in_range(-2..=2)?),
                2 => Index::Product,
                _ => Index::Quotient,
            };
            (base.rows, base.value) = (Rows::Constant, Value::Copy);
            base.guard = None;
        }
        Theme::Scalars => {
            let views = [View::SymbolicOffset, View::SymbolicStride, View::SymbolicShape];
            base.view = *u.choose(&views)?;
            base.name = Name::Second;
        }
        Theme::Permuted => {
            base.rows = *u.choose(&[Rows::Scalar, Rows::Constant, Rows::Stated, Rows::Stated])?;
            base.value = *u.choose(&[Value::Difference, Value::Copy])?;
            (base.name, base.outer.extent) = (Name::Scalar, 3);
            if base.rows == Rows::Stated {
                // Nothing but the shapes mentions the scalars.
                (base.value, base.name, base.outer.extent) = (Value::Copy, Name::Outer, 1);
                base.view = View::SymbolicShape;
            }
        }
        Theme::Premises => {
            base.premise = Some(match u.int_in_range(0..=3u8)? {
                0 => Premise::Oversized,
                1 => Premise::WithoutValue,
                2 => Premise::Contradictory(u.int_in_range(-1..=2)?),
                _ => Premise::Scalar(*u.choose(&COMPARISONS)?, u.int_in_range(-1..=1)?),
            });
        }
        Theme::Assertions => {
            let what = *u.choose(&[Asserted::Scalar, Asserted::Sum, Asserted::Rows, Asserted::Loaded])?;
            let (how, number) = (*u.choose(&COMPARISONS)?, u.int_in_range(-1..=3)?);
            base.premise = Some(Premise::Stated(what, how, number, u.int_in_range(-3..=1)?));
            if what == Asserted::Rows {
                base.rows = Rows::Symbol;
            }
        }
        Theme::Requests => {
            base.request = if u.arbitrary()? { Some(*u.choose(&REQUESTS)?) } else { None };
            (base.index, base.rows) = (Index::Element, Rows::Constant);
        }
        Theme::Overlap => {
            let (row, column) = (u.int_in_range(0..=2)?, u.int_in_range(0..=1)?);
            base.view = if u.arbitrary()? { View::Strides(row, column) } else { View::Declared(row, column) };
            base.outer.kind = *u.choose(&[Kind::Parallel, Kind::Block, Kind::Serial])?;
            base.inner.kind = *u.choose(&[Kind::Parallel, Kind::Vectorized, Kind::Serial])?;
            base.index = Index::Element;
        }
        Theme::Textures => {
            (base.value, base.rows, base.index) = (Value::Texture, Rows::Constant, Index::Element);
            base.guard = Some(guard(u)?);
            base.outer.kind = *u.choose(&[Kind::Block, Kind::Thread, Kind::Serial])?;
        }
        Theme::Sums => {
            base.integers = u.ratio(1, 4)?;
            base.value = *u.choose(&[Value::Sum, Value::Accumulate])?;
            if base.value == Value::Accumulate {
                base.index = *u.choose(&[Index::Column, Index::Row])?;
            }
        }
        Theme::Threads => {
            base.outer.kind = *u.choose(&[Kind::Block, Kind::Thread])?;
            base.second = Some(u.int_in_range(1..=6)?);
        }
        Theme::Sizes => {
            base.huge = Some(Huge { rows: *u.choose(&SIZES)?, is_iterated: u.arbitrary()? });
            (base.rows, base.index) = (Rows::Constant, Index::Element);
            base.outer.min = 0;
        }
        Theme::Vectors => {
            base.index = *u.choose(&[Index::Element, Index::Element, Index::Column])?;
            base.guard = None;
            let values = [
                Value::Copy,
                Value::Plus(2),
                Value::Sum,
                Value::Accumulate,
                Value::Neighbour(1),
                Value::Neighbour(-1),
                Value::Neighbour(u.int_in_range(2..=3)?),
            ];
            base.value = *u.choose(&values)?;
        }
        Theme::Equal | Theme::Storage | Theme::Mistake => {}
    }
    Ok(())
}

/// The change that a theme is about.
fn change_for(theme: Theme, base: &Base, u: &mut Unstructured<'_>) -> Result<Option<How>> {
    Ok(match theme {
        Theme::Race | Theme::Equal | Theme::Textures => None,
        Theme::Scalars => Some(match u.int_in_range(0..=3u8)? {
            0 | 1 => How::AddGuard(Guard::Name(*u.choose(&COMPARISONS)?, u.int_in_range(-1..=1)?)),
            2 => How::DropGuard,
            _ => How::Review(View::Plain),
        }),
        Theme::Permuted => Some(How::PermuteScalars),
        Theme::Assertions => Some(match u.int_in_range(0..=5u8)? {
            0..=2 => How::Reword,
            3 | 4 => How::AlterAssertion,
            _ => mistake(u)?,
        }),
        Theme::Premises => Some(if u.arbitrary()? { How::AddToValue } else { mistake(u)? }),
        Theme::Requests => {
            let other = if u.arbitrary()? { None } else { Some(*u.choose(&REQUESTS)?) };
            (other != base.request).then_some(How::Ask(other))
        }
        Theme::Overlap => u.arbitrary::<bool>()?.then_some(How::AtOnce),
        Theme::Sums => Some(if base.value == Value::Sum { How::RegroupFloats } else { How::Backwards }),
        Theme::Threads => Some(if u.arbitrary()? { How::Resize } else { mistake(u)? }),
        Theme::Sizes => {
            if u.arbitrary()? {
                Some(mistake(u)?)
            } else {
                None
            }
        }
        Theme::Storage => match u.int_in_range(0..=5u8)? {
            0..=2 => None,
            3 => Some(How::OtherHalf),
            4 => Some(*u.choose(&[How::Exchange, How::Extent, How::Start])?),
            _ => Some(mistake(u)?),
        },
        Theme::Vectors => Some(if u.arbitrary()? { How::Vectorize } else { How::VectorizeWrongly }),
        Theme::Mistake => Some(mistake(u)?),
    })
}
