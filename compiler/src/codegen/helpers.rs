//! Helper functions of a kernel source, written only where they are used. The target defines them.

/// The helpers that a source needs, each once; a helper comes before the helpers that call it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Helpers {
    texts: Vec<(String, String)>,
}

impl Helpers {
    /// All definitions, in order.
    pub(crate) fn source(&self) -> String {
        let texts: Vec<_> = self.texts.iter().flat_map(|(_, text)| [text.as_str(), "\n"]).collect();
        texts.concat()
    }

    /// Adds the definitions of another source.
    ///
    /// # Errors
    /// The name of a helper that has different definitions in the two sources.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), String> {
        for (name, text) in &other.texts {
            match self.texts.iter().find(|(known, _)| known == name) {
                None => self.texts.push((name.clone(), text.clone())),
                Some((_, known)) if known == text => {}
                Some(_) => return Err(name.clone()),
            }
        }
        Ok(())
    }

    /// Defines `name` if it is not defined yet, and returns it. `text` is called with the name.
    pub(crate) fn define(&mut self, name: String, text: impl FnOnce(&str) -> String) -> String {
        if !self.texts.iter().any(|(known, _)| *known == name) {
            let text = text(&name);
            self.texts.push((name.clone(), text));
        }
        name
    }
}
