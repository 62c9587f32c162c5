//! Networks of any size, for tests and benchmarks of planners.

use tilewright_ir::{Diagnostic, ScalarType, Scope};

use tilewright_memory::graph::{GraphBuilder, NamedGraph};

/// A network of about `n` tensors: blocks of an inverted residual (expand, depthwise, project,
/// add), one in five of buffers and the others of textures, in stages that get smaller and deeper,
/// with a view after each block.
///
/// # Errors
/// None as long as the tensors fit into memory: the graph has no defects.
pub fn network(n: usize) -> Result<NamedGraph, Vec<Diagnostic>> {
    const SCOPES: [Scope; 2] = [Scope::Texture, Scope::Global];
    let mut graph = GraphBuilder::new();
    let (mut side, mut channels) = (112, 16);
    let mut last = SCOPES
        .map(|scope| graph.input(format!("x.{scope}"), [1, channels / 4, side, side, 4], ScalarType::Float16, scope));
    // A block adds seven tensors: expand, depthwise, project, sum, same, packed and scale.
    for block in 0..=n / 7 {
        let branch = usize::from(block % 5 == 3);
        let scope = SCOPES[branch];
        if block % 40 == 39 {
            // After a side of 7 the sizes start again at 112, so a network of any length has only five sizes of images.
            (side, channels) = if side > 7 { (side.div_ceil(2), channels + 12) } else { (112, 16) };
            for (at, last) in last.iter_mut().enumerate() {
                let name = format!("b{block}.pool.{at}");
                let down = graph.tensor(&name, [1, channels / 4, side, side, 4], ScalarType::Float16, SCOPES[at]);
                graph.step(name, [*last], [down]);
                *last = down;
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
        // Three different widths, so that not every free texture fits the next weight.
        let weight = [channels / 4 * 4, channels / 4 * [2, 3, 4][block % 3], 4];
        let packed = graph.tensor(format!("b{block}.packed"), weight, ScalarType::Float32, Scope::TextureWeight);
        let scale = graph.tensor(format!("b{block}.scale"), [channels + 3], ScalarType::Float32, Scope::Global);
        graph.step(format!("b{block}.pack"), [last[branch]], [packed, scale]);
    }
    for output in last {
        graph.output(output);
    }
    graph.finish()
}
