//! Graphs for the tests and benchmarks of memory planners: random ones of every kind, and networks of any length.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tilewright::graph::{GraphBuilder, NamedGraph};
use tilewright_ir::{DataType, ScalarType, Scope};

/// Numbers that look random and are the same for the same seed (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    /// A place in a list of `n`.
    pub(crate) fn place(&mut self, n: usize) -> usize {
        usize::try_from(self.below(u64::try_from(n).unwrap())).unwrap()
    }

    pub(crate) fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.place(list.len())].clone()
    }

    /// Whether something happens that happens `times` times of 100.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}

/// A tensor of any kind: buffers and textures of several scopes and types, ragged extents, empty buffers, vectors.
fn kind(random: &mut Random, textures: u64, large: u64) -> (Vec<u64>, DataType, Scope) {
    let mut extent = |most| 1 + random.below(most);
    let (a, b, c, d) = (extent(3), extent(5), extent(large), extent(large));
    if random.percent(textures) {
        let dtype = random.one_of(&[ScalarType::Float16, ScalarType::Float16, ScalarType::Float32, ScalarType::Int8]);
        let scope = random.one_of(&[Scope::Texture, Scope::Texture, Scope::TextureWeight, Scope::TextureNhwc]);
        return (vec![a, b, c, 1 + d % 16, 4], dtype.into(), scope);
    }
    let scalar = random.one_of(&[ScalarType::Float32, ScalarType::Float16, ScalarType::Int8, ScalarType::Int64]);
    let lanes = random.one_of(&[1, 1, 1, 1, 4, 3, 64]);
    let empty = u64::from(!random.percent(3));
    (vec![a, b, c * empty, d], DataType::scalar(scalar).with_lanes(lanes), Scope::Global)
}

/// A graph made from a seed: chains and branches, steps with several outputs, long skips, tensors that nobody reads, views of
/// views, views that are outputs, outputs in the middle.
pub(crate) fn random(seed: u64) -> NamedGraph {
    let mut random = Random::new(seed);
    let n_steps = 1 + random.below(40);
    let (textures, large) = (random.one_of(&[0, 50, 100, 80]), random.one_of(&[4, 30, 90]));
    // Few kinds, so that there is something to share.
    let kinds: Vec<_> = (0..=random.below(9)).map(|_| kind(&mut random, textures, large)).collect();
    let mut graph = GraphBuilder::new();
    let mut alive: Vec<usize> = Vec::new();
    for at in 0..=random.below(3) {
        let (shape, dtype, scope) = random.one_of(&kinds);
        alive.push(graph.input(format!("in{at}"), shape, dtype, scope));
    }
    let mut written = Vec::new();
    for step in 0..n_steps {
        let reads: Vec<usize> = (0..random.below(4)).map(|_| near_the_end(&mut random, &alive)).collect();
        let mut writes = Vec::new();
        for k in 0..=(random.below(5) / 3) {
            let (shape, dtype, scope) =
                if random.percent(70) { random.one_of(&kinds) } else { kind(&mut random, textures, large) };
            writes.push(graph.tensor(format!("t{step}_{k}"), shape, dtype, scope));
        }
        written.extend(writes.iter().copied());
        alive.extend(writes.iter().copied());
        let at = graph.step(format!("step{step}"), reads, writes);
        if random.percent(40) {
            graph.function(at, random.one_of(&["conv", "relu", "add"]));
        }
        if random.percent(25) {
            let of = near_the_end(&mut random, &alive);
            let root = &graph.graph().tensors[of];
            let mut shape = root.shape.clone();
            if root.scope == Scope::Global {
                shape = vec![shape.iter().product()];
            }
            alive.push(graph.view(format!("v{step}"), of, shape));
        }
    }
    for at in 0..=random.below(3) {
        let output = if at == 0 { *written.last().unwrap() } else { random.one_of(&alive) };
        graph.output(output);
    }
    graph.finish().unwrap_or_else(|faults| panic!("seed {seed}: {faults:?}"))
}

/// One of the last few, or now and then any.
fn near_the_end(random: &mut Random, list: &[usize]) -> usize {
    if random.percent(15) {
        return random.one_of(list);
    }
    list[list.len() - 1 - random.place(list.len().min(4))]
}

/// A network of about `n` tensors: blocks of an inverted residual (expand, depthwise, project, add) with textures in one half
/// and buffers in the other, in stages that get smaller and deeper, and a view after each block.
pub(crate) fn network(n: usize) -> NamedGraph {
    let mut graph = GraphBuilder::new();
    let blocks = n / 7 + 1;
    let mut side = 112;
    let mut channels = 16;
    let mut last: Vec<usize> = [Scope::Texture, Scope::Global]
        .iter()
        .map(|&scope| graph.input(format!("x.{scope}"), [1, channels / 4, side, side, 4], ScalarType::Float16, scope))
        .collect();
    for block in 0..blocks {
        let branch = usize::from(block % 5 == 3);
        let scope = [Scope::Texture, Scope::Global][branch];
        if block % 40 == 39 {
            (side, channels) = if side > 7 { (side.div_ceil(2), channels + 12) } else { (112, 16) };
            for at in 0..2 {
                let scope = [Scope::Texture, Scope::Global][at];
                let name = format!("b{block}.pool.{at}");
                let down = graph.tensor(&name, [1, channels / 4, side, side, 4], ScalarType::Float16, scope);
                graph.step(name, [last[at]], [down]);
                last[at] = down;
            }
        }
        let mut tensor = |name: &str, factor: u64| {
            let shape = [1, channels / 4 * factor, side, side, 4];
            graph.tensor(format!("b{block}.{name}"), shape, ScalarType::Float16, scope)
        };
        let (expand, depthwise, project, sum) =
            (tensor("expand", 6), tensor("depthwise", 6), tensor("project", 1), tensor("sum", 1));
        graph.step(format!("b{block}.expand"), [last[branch]], [expand]);
        graph.step(format!("b{block}.depthwise"), [expand], [depthwise]);
        graph.step(format!("b{block}.project"), [depthwise], [project]);
        graph.step(format!("b{block}.sum"), [project, last[branch]], [sum]);
        last[branch] = graph.view(format!("b{block}.same"), sum, [1, channels / 4, side, side, 4]);
        let weight = [channels / 4 * 4, channels / 4 * (2 + u64::try_from(block % 3).unwrap()), 4];
        let packed = graph.tensor(format!("b{block}.packed"), weight, ScalarType::Float32, Scope::TextureWeight);
        let scale = graph.tensor(format!("b{block}.scale"), [channels + 3], ScalarType::Float32, Scope::Global);
        graph.step(format!("b{block}.pack"), [last[branch]], [packed, scale]);
    }
    for output in last {
        graph.output(output);
    }
    graph.finish().unwrap()
}
