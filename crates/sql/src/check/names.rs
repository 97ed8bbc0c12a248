//! Name resolution.
//!
//! ```text
//! FROM c x JOIN t IN x.tags       `c` names the container only here; `x` and `t` are bound
//! ```
//!
//! The first source of the outermost block names the container, under any name; so does the first source of a subquery
//! that is itself the first source. Every other name must be an alias that `FROM` binds.

use super::{Checked, Checker, ExprContext};
use crate::parse::ast::{Expr, ExprKind, FromItem, Select};
use crate::parse::{Diagnostic, Span};

#[derive(Clone)]
pub(super) struct NameScope<'q> {
    /// Outermost first; later names shadow earlier ones.
    names: Vec<&'q str>,
    /// Sources with an alias: `c` and `x` of `FROM c x`.
    renamed: Vec<(&'q str, &'q str)>,
    /// No source has been read yet, so an unknown name is the container.
    container_is_unbound: bool,
    /// The block is a subquery that can use names of an outer one.
    is_correlated: bool,
}

impl<'q> NameScope<'q> {
    pub fn outermost() -> Self {
        NameScope { names: Vec::new(), renamed: Vec::new(), container_is_unbound: true, is_correlated: false }
    }

    pub fn is_correlated(&self) -> bool {
        self.is_correlated
    }

    pub fn resolve(&self, name: &str, span: Span) -> Result<(), Diagnostic> {
        if self.names.contains(&name) { Ok(()) } else { Err(self.unresolved(name, span)) }
    }

    fn unresolved(&self, name: &str, span: Span) -> Diagnostic {
        let diagnostic = Diagnostic::coded(span, "SC2001", format!("Identifier '{name}' could not be resolved."));
        match self.hint(name) {
            Some(hint) => diagnostic.with_hint(hint),
            None => diagnostic,
        }
    }

    fn hint(&self, name: &str) -> Option<String> {
        if ["TRUE", "FALSE", "NULL", "UNDEFINED"].iter().any(|word| name.eq_ignore_ascii_case(word)) {
            return Some(format!("Write {} in lower case.", name.to_ascii_lowercase()));
        }
        if let Some(alias) = self.names.iter().find(|alias| name.eq_ignore_ascii_case(alias)) {
            return Some(format!("Names are case-sensitive: write {alias}."));
        }
        if let Some((_, alias)) = self.renamed.iter().find(|(source, _)| *source == name) {
            return Some(format!("FROM calls it {alias}."));
        }
        match self.names.first() {
            Some(alias) => Some(format!("Write {alias}.{name} for a property of the item.")),
            None => Some("Without FROM there are no items, and what FROM reads needs a name: write FROM c, or FROM c.list[0] AS x.".to_owned()),
        }
    }
}

impl<'q> Checker<'q> {
    /// The scope of the block's own scalars.
    pub(super) fn sources(&mut self, select: &'q Select, outer: &NameScope<'q>) -> Result<NameScope<'q>, Diagnostic> {
        let mut scope = NameScope { is_correlated: !outer.names.is_empty(), ..outer.clone() };
        for (at, source) in select.from.iter().enumerate() {
            self.source(&source.expr, &scope)?;
            scope.container_is_unbound = false;
            if let Some(name) = source.name() {
                check_unique_alias(name, source, &select.from[..at])?;
                scope.names.push(name);
                scope.renamed.extend(source.expr.inferred_name().map(|inferred| (inferred, name)));
            }
        }
        scope.container_is_unbound = false;
        Ok(scope)
    }

    fn source(&mut self, of: &'q Expr, scope: &NameScope<'q>) -> Checked {
        match &of.kind {
            ExprKind::Name(_) if scope.container_is_unbound => Ok(()),
            ExprKind::Access { base, .. } => self.source(base, scope),
            ExprKind::Subquery { select, .. } => self.block(select, scope),
            _ => self.scalar(of, scope, ExprContext::Row("FROM")),
        }
    }
}

fn check_unique_alias(name: &str, source: &FromItem, earlier: &[FromItem]) -> Result<(), Diagnostic> {
    if earlier.iter().all(|other| other.name() != Some(name)) {
        return Ok(());
    }
    let span = source.alias.as_ref().map_or(source.expr.span, |alias| alias.span);
    Err(Diagnostic::plain(span, format!("FROM names '{name}' twice. Give one of them another alias.")))
}
