//! Reduces recipes: first without a stage, an input, a feature or an operator, then with smaller
//! extents.
//!
//! Stages, inputs, features and operators only disappear, extents and the seed only become smaller, and element types and
//! indices only become the default, so repeated reduction terminates. Candidates equal to the recipe are left out.
//! The first candidates remove most: a failure that needs one stage is found in a few checks.

use super::recipe::{At, Edge, Keep, Layout, Loop, Premise, Read, Recipe, Stage, Tensor, Test, Value};
use crate::case::{smaller, without_one};
use crate::map::Op;

/// Recipes simpler than this one, the most simplified first.
pub(super) fn simpler(recipe: &Recipe) -> Vec<Recipe> {
    let mut found = Vec::new();
    let with = |change: &dyn Fn(&mut Recipe)| {
        let mut changed = recipe.clone();
        change(&mut changed);
        changed
    };
    if recipe.stages.len() > 1 {
        found.extend(without_one(&recipe.stages).into_iter().map(|stages| with(&|r| r.stages.clone_from(&stages))));
    }
    if recipe.inputs.len() > 1 {
        found.extend(without_one(&recipe.inputs).into_iter().map(|inputs| with(&|r| r.inputs.clone_from(&inputs))));
    }
    if !recipe.scalars.is_empty() {
        found.push(with(&|r| r.scalars.clear()));
    }
    found.extend(without_one(&recipe.steps).into_iter().map(|steps| with(&|r| r.steps.clone_from(&steps))));
    found.extend(without_one(&recipe.passes).into_iter().map(|passes| with(&|r| r.passes.clone_from(&passes))));
    found.push(with(&|r| r.premise = Premise::Nothing));
    found.extend(without_one(&recipe.unknown).into_iter().map(|unknown| with(&|r| r.unknown.clone_from(&unknown))));
    for (number, stage) in recipe.stages.iter().enumerate() {
        found.extend(stages(stage).into_iter().map(|stage| with(&|r| r.stages[number].clone_from(&stage))));
    }
    for (number, input) in recipe.inputs.iter().enumerate() {
        found.extend(tensors(input).into_iter().map(|input| with(&|r| r.inputs[number].clone_from(&input))));
    }
    // An axis is removed from all tensors at once, because tensors of different rank rarely fail in
    // the same way.
    for axes in 0..6 {
        let mut shorter = recipe.clone();
        let all = all_tensors(&mut shorter);
        if all.iter().filter(|tensor| tensor.shape.len() > axes).count() > 0 {
            for tensor in all {
                if tensor.shape.len() > 1 && tensor.shape.len() > axes {
                    tensor.shape.remove(axes);
                }
            }
            found.push(shorter);
        }
    }
    found.extend(extents(recipe));
    if recipe.seed > 0 {
        found.push(with(&|r| r.seed = 0));
    }
    found.retain(|changed| changed != recipe);
    found
}

/// The tensors of a recipe: inputs, then targets.
fn all_tensors(recipe: &mut Recipe) -> Vec<&mut Tensor> {
    recipe.inputs.iter_mut().chain(recipe.stages.iter_mut().map(|stage| &mut stage.target)).collect()
}

/// Recipes with a smaller extent: in all tensors that have it at once, so that they still fit
/// together; then in one tensor alone.
fn extents(recipe: &Recipe) -> Vec<Recipe> {
    let mut copy = recipe.clone();
    let mut all: Vec<i64> = all_tensors(&mut copy).iter().flat_map(|tensor| tensor.shape.clone()).collect();
    all.sort_unstable();
    all.dedup();
    let mut found = Vec::new();
    // Largest first, which removes the most elements.
    for extent in all.into_iter().rev() {
        for less in smaller(extent) {
            let mut changed = recipe.clone();
            for tensor in all_tensors(&mut changed) {
                tensor.shape.iter_mut().filter(|found| **found == extent).for_each(|found| *found = less);
            }
            // Symbolic extents are listed by value. If these stayed, the program would lose its symbols.
            changed.unknown.iter_mut().filter(|found| **found == extent).for_each(|found| *found = less);
            found.push(changed);
        }
    }
    for number in 0..all_tensors(&mut copy).len() {
        let shape = all_tensors(&mut copy)[number].shape.clone();
        for (axis, extent) in shape.iter().enumerate() {
            for less in smaller(*extent) {
                let mut changed = recipe.clone();
                if let Some(tensor) = all_tensors(&mut changed).get_mut(number) {
                    tensor.shape[axis] = less;
                }
                found.push(changed);
            }
        }
    }
    found
}

/// Simpler tensors: by layout, scope, lanes and type.
fn tensors(tensor: &Tensor) -> Vec<Tensor> {
    let mut found = Vec::new();
    match &tensor.layout {
        Layout::Plain => {}
        Layout::Packed => found.push(Layout::Plain),
        Layout::Ops { ops, separators, cuts } => {
            found.push(Layout::Plain);
            let with = |ops: &[Op], separators: &[usize], cuts: &[usize]| Layout::Ops {
                ops: ops.to_vec(),
                separators: separators.to_vec(),
                cuts: cuts.to_vec(),
            };
            found.extend(without_one(ops).iter().map(|ops| with(ops, separators, cuts)));
            found.extend(without_one(separators).iter().map(|separators| with(ops, separators, cuts)));
            found.extend(without_one(cuts).iter().map(|cuts| with(ops, separators, cuts)));
        }
        Layout::Tiles { turn, tiles, pad } => {
            found.push(Layout::Plain);
            let fewer = without_one(tiles).into_iter();
            found.extend(fewer.map(|tiles| Layout::Tiles { turn: *turn, tiles, pad: *pad }));
            if *turn > 0 {
                found.push(Layout::Tiles { turn: 0, tiles: tiles.clone(), pad: *pad });
            }
            if pad.is_some() {
                found.push(Layout::Tiles { turn: *turn, tiles: tiles.clone(), pad: None });
            }
        }
    }
    let mut found: Vec<Tensor> = found.into_iter().map(|layout| Tensor { layout, ..tensor.clone() }).collect();
    if tensor.scope.is_texture() {
        found.push(Tensor { scope: tilewright_ir::Scope::Global, ..tensor.clone() });
    }
    if tensor.dtype.lanes > 1 {
        found.push(Tensor { dtype: tensor.dtype.with_lanes(1), ..tensor.clone() });
    }
    // Every type may become `int32` and `int32` no other type, so that reduction terminates.
    if tensor.dtype.scalar != tilewright_ir::ScalarType::Int32 {
        let dtype = tilewright_ir::DataType::INT32.with_lanes(tensor.dtype.lanes);
        found.push(Tensor { dtype, ..tensor.clone() });
    }
    found
}

/// Simpler stages: without a property, with a simpler loop, condition, value or target.
fn stages(stage: &Stage) -> Vec<Stage> {
    let with = |change: &dyn Fn(&mut Stage)| {
        let mut changed = stage.clone();
        change(&mut changed);
        changed
    };
    // Candidates are made without asking whether the property is there; the last line removes those without a change.
    let mut found = vec![
        with(&|s| s.shared = None),
        with(&|s| s.reduce = None),
        with(&|s| s.guard = None),
        with(&|s| s.lanes = None),
        with(&|s| s.through = None),
        with(&|s| s.wide = false),
        with(&|s| s.loops.clear()),
        with(&|s| s.is_output = false),
    ];
    if let Some(shared) = &stage.shared {
        found.extend(shared.simpler().into_iter().map(|shared| with(&|s| s.shared = Some(shared.clone()))));
    }
    if let Some(reduce) = &stage.reduce {
        if reduce.keep != Keep::Target {
            found.push(with(&|s| s.reduce.iter_mut().for_each(|reduce| reduce.keep = Keep::Target)));
        }
        for extents in without_one(&reduce.extents) {
            found.push(with(&|s| s.reduce.iter_mut().for_each(|reduce| reduce.extents.clone_from(&extents))));
        }
        for (axis, extent) in reduce.extents.iter().enumerate() {
            let less = smaller(*extent).into_iter();
            found.extend(less.map(|less| with(&|s| s.reduce.iter_mut().for_each(|r| r.extents[axis] = less))));
        }
    }
    for (axis, how) in stage.loops.iter().enumerate() {
        let default_loop = Loop::default();
        let simpler = [
            default_loop.clone(),
            Loop { split: None, ..how.clone() },
            Loop { min: 0, ..how.clone() },
            Loop { bind: false, ..how.clone() },
            Loop { order: 0, ..how.clone() },
            Loop { kind: default_loop.kind, ..how.clone() },
        ];
        found.extend(simpler.into_iter().map(|how| with(&|s| s.loops[axis].clone_from(&how))));
    }
    if let Some(guard) = &stage.guard {
        let tests = tests(&guard.test).into_iter();
        found.extend(tests.map(|test| with(&|s| s.guard.iter_mut().for_each(|guard| guard.test.clone_from(&test)))));
    }
    found.extend(values(&stage.value).into_iter().map(|value| with(&|s| s.value.clone_from(&value))));
    found.extend(tensors(&stage.target).into_iter().map(|target| with(&|s| s.target.clone_from(&target))));
    found.retain(|changed| changed != stage);
    found
}

/// Simpler conditions: the operands.
fn tests(test: &Test) -> Vec<Test> {
    match test {
        Test::Both(a, b) | Test::Either(a, b) => vec![(**a).clone(), (**b).clone()],
        Test::Not(a) => vec![(**a).clone()],
        Test::Below(..) | Test::Remainder(..) | Test::Ordered(..) => Vec::new(),
    }
}

/// Simpler values: an operand in place of the value, then the value with a simpler operand, then a
/// constant.
fn values(value: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = parts(value).into_iter().cloned().collect();
    let put = |place: usize, part: Value| {
        let mut changed = value.clone();
        if let Some(found) = parts_mut(&mut changed).into_iter().nth(place) {
            *found = part;
        }
        changed
    };
    for (place, part) in parts(value).into_iter().enumerate() {
        found.extend(values(part).into_iter().map(|part| put(place, part)));
    }
    match value {
        Value::Read(read) => found.extend(reads(read).into_iter().map(Value::Read)),
        Value::Choose(test, lazily, values) => {
            found.extend(tests(test).into_iter().map(|test| Value::Choose(test, *lazily, values.clone())));
        }
        Value::Constant(_)
        | Value::Index(_)
        | Value::Scalar(_)
        | Value::Unary(..)
        | Value::Binary(..)
        | Value::Compare(..)
        | Value::Convert(..) => {}
    }
    // A constant is not simplified any further, so that reduction terminates.
    if !matches!(value, Value::Constant(_)) {
        found.push(Value::Constant(1));
    }
    found
}

/// The operands of a value.
fn parts(value: &Value) -> Vec<&Value> {
    match value {
        Value::Constant(_) | Value::Index(_) | Value::Scalar(_) | Value::Read(_) => Vec::new(),
        Value::Unary(_, a) | Value::Convert(_, a) => vec![a],
        Value::Binary(_, a, b) => vec![a, b],
        Value::Compare(_, parts) => parts.iter().collect(),
        Value::Choose(_, _, values) => values.iter().collect(),
    }
}

/// The operands of a value, mutably.
pub(super) fn parts_mut(value: &mut Value) -> Vec<&mut Value> {
    match value {
        Value::Constant(_) | Value::Index(_) | Value::Scalar(_) | Value::Read(_) => Vec::new(),
        Value::Unary(_, a) | Value::Convert(_, a) => vec![a],
        Value::Binary(_, a, b) => vec![a, b],
        Value::Compare(_, parts) => parts.iter_mut().collect(),
        Value::Choose(_, _, values) => values.iter_mut().collect(),
    }
}

/// Simpler loads: without indices, view or guard, from the first tensor, or with a simpler index.
fn reads(read: &Read) -> Vec<Read> {
    let mut found = vec![
        Read { at: Vec::new(), ..read.clone() },
        Read { through: None, ..read.clone() },
        Read { edge: Edge::Wrap, ..read.clone() },
        Read { from: 0, ..read.clone() },
    ];
    for (place, at) in read.at.iter().enumerate() {
        let simpler = match at {
            At::Axis(_, 1, 0) => continue,
            At::Axis(axis, ..) | At::Sum(axis, ..) | At::Reverse(axis) => At::Axis(*axis, 1, 0),
            At::Fixed(_) | At::Gather(_) => At::Axis(place, 1, 0),
        };
        let mut changed = read.clone();
        changed.at[place] = simpler;
        found.push(changed);
    }
    found.retain(|changed| changed != read);
    found
}
