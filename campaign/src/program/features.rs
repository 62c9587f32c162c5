//! The features of a recipe: the rows of the coverage table.

use std::collections::BTreeSet;

use super::recipe::{At, Edge, Kind, Layout, Read, Recipe, Stage, Tensor, Test, Value, View};

/// The features of a recipe, each once, in alphabetical order.
pub(super) fn features(recipe: &Recipe) -> Vec<String> {
    let mut seen = Seen(BTreeSet::new());
    recipe.inputs.iter().for_each(|tensor| seen.tensor(tensor));
    recipe.stages.iter().for_each(|stage| seen.stage(stage));
    if !recipe.scalars.is_empty() {
        seen.add("kind:scalar");
    }
    if !recipe.unknown.is_empty() {
        seen.add("kind:symbolic");
        seen.add(format!("premise:{}", name(&recipe.premise)));
    }
    recipe.steps.iter().for_each(|step| seen.add(format!("step:{}", step.primitive.name())));
    recipe.passes.iter().for_each(|pass| seen.add(format!("asks:{}", pass.name())));
    if recipe.stages.len() > 1 {
        seen.add("kind:stages");
    }
    seen.0.into_iter().collect()
}

/// The features found so far.
struct Seen(BTreeSet<String>);

/// The serialized name of an enum value without fields.
fn name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

impl Seen {
    /// Adds a feature.
    fn add(&mut self, feature: impl Into<String>) {
        self.0.insert(feature.into());
    }

    /// The features of a tensor: rank, type, scope and layout.
    fn tensor(&mut self, tensor: &Tensor) {
        self.add(format!("rank:{}", tensor.extents().len()));
        self.add(format!("dtype:{}", tensor.dtype.scalar));
        if tensor.dtype.lanes > 1 {
            self.add("dtype:vector");
        }
        if tensor.is_texture() {
            self.add(format!("scope:{}", tensor.scope));
            if tensor.is_packed() {
                self.add("layout:packed");
            }
            // The builder ignores other layouts of a texture.
            return;
        }
        match &tensor.layout {
            Layout::Plain | Layout::Packed => {}
            Layout::Tiles { pad, .. } => self.add(if pad.is_some() { "layout:padded_tiles" } else { "layout:tiles" }),
            Layout::Ops { ops, separators, cuts } => {
                if !cuts.is_empty() {
                    self.add("layout:maps");
                }
                if !separators.is_empty() {
                    self.add("layout:separators");
                }
                for op in ops {
                    self.add(format!("op:{}", op.name()));
                }
            }
        }
    }

    /// The features of a stage.
    fn stage(&mut self, stage: &Stage) {
        self.tensor(&stage.target);
        match &stage.reduce {
            Some(reduce) => {
                self.add("kind:reduction");
                self.add(format!("reduce:{}", name(&reduce.op)));
                self.add(format!("keep:{}", name(&reduce.keep)));
            }
            None => self.add("kind:elementwise"),
        }
        // As the recipe asks for them: the builder makes a reduced axis serial or unrolled, and may ignore a split.
        for how in &stage.loops {
            self.add(format!("for:{}", name(&how.kind)));
            if matches!(how.kind, Kind::Block | Kind::Thread) {
                self.add("kind:threads");
            }
            if how.split.is_some() {
                self.add("for:split");
            }
            if how.bind {
                self.add("for:let");
            }
        }
        if let Some(guard) = &stage.guard {
            self.add("kind:guard");
            self.test(&guard.test);
        }
        if let Some(shared) = &stage.shared {
            self.add("kind:shared");
            self.add(format!("shared:{}", shared.exchange.name()));
        }
        if stage.lanes.is_some() {
            self.add("kind:ramp");
        }
        if stage.wide {
            self.add("dtype:int64 index");
        }
        self.view(stage.through);
        self.value(&stage.value);
    }

    /// The features of a view.
    fn view(&mut self, view: Option<View>) {
        let Some(view) = view else { return };
        self.add("kind:view");
        self.add(match view {
            View::Same => "view:same",
            View::Flat => "view:flat",
            View::Fold(_) => "view:fold",
            View::Offset(_) => "view:offset",
            View::Every(_) => "view:every",
            View::Transposed => "view:transposed",
        });
    }

    /// The features of a condition.
    fn test(&mut self, test: &Test) {
        if let Test::Both(a, b) | Test::Either(a, b) = test {
            self.test(a);
            self.test(b);
        }
        self.add(match test {
            Test::Below(..) => "test:below",
            Test::Remainder(..) => "test:remainder",
            Test::Ordered(..) => "test:ordered",
            Test::Both(..) => "test:both",
            Test::Either(..) => "test:either",
            Test::Not(_) => "test:not",
        });
    }

    /// Adds the feature of a value, which is named after its operator, and the features of its operands.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Constant(_) => self.add("expr:constant"),
            Value::Index(_) => self.add("expr:index"),
            Value::Scalar(_) => self.add("expr:scalar"),
            Value::Read(read) => self.read(read),
            Value::Unary(op, a) => {
                self.add(format!("expr:{}", name(op)));
                self.value(a);
            }
            Value::Binary(op, a, b) => {
                self.add(format!("expr:{}", name(op)));
                self.value(a);
                self.value(b);
            }
            Value::Compare(op, parts) => {
                self.add(format!("expr:{}", name(op)));
                parts.iter().for_each(|part| self.value(part));
            }
            Value::Choose(test, lazily, values) => {
                self.add(if *lazily { "expr:if_then_else" } else { "expr:select" });
                self.test(test);
                values.iter().for_each(|value| self.value(value));
            }
            Value::Convert(_, value) => {
                self.add("expr:cast");
                self.value(value);
            }
        }
    }

    /// The features of a load.
    fn read(&mut self, read: &Read) {
        self.add("expr:load");
        self.view(read.through);
        for at in &read.at {
            self.add(match at {
                At::Axis(_, _, 0) | At::Fixed(_) => continue,
                At::Axis(..) | At::Sum(..) => "kind:window",
                At::Reverse(_) => "kind:reverse",
                At::Gather(_) => "kind:gather",
            });
        }
        if !read.at.is_empty() && read.edge != Edge::Wrap {
            self.add(if read.edge == Edge::Clamp { "edge:clamp" } else { "edge:guard" });
        }
    }
}
