//! How two figures lie to each other, on either surface.
//!
//! Promise: `distance` is 0 exactly when `intersects` says so; borders belong to what they bound. Edges are
//! compared with edges bundle by bundle, and a place is looked up in a polygon only where borders meet: between
//! two such places nothing changes.

use crate::figure::{Bundle, Figure, Place, Segment, segments};

pub fn intersects<P: Place>(a: &Figure<P>, b: &Figure<P>) -> bool {
    starts(a).any(|place| b.covers(place)) || starts(b).any(|place| a.covers(place)) || borders_meet(a, b)
}

/// One place of each part; where no borders meet, the part is where this place is.
fn starts<P: Place>(figure: &Figure<P>) -> impl Iterator<Item = P> {
    figure.chains().filter_map(|chain| chain.first().copied())
}

fn borders_meet<P: Place>(a: &Figure<P>, b: &Figure<P>) -> bool {
    let near = a.bundles().iter().flat_map(|one| b.bundles().iter().map(move |other| (one, other)));
    near.filter(|(one, other)| one.may_meet(other)).any(|(one, other)| bundles_meet(one, other))
}

fn bundles_meet<P: Place>(one: &Bundle<P>, other: &Bundle<P>) -> bool {
    one.edges.iter().any(|&one| other.edges.iter().any(|&other| meet(one, other)))
}

fn meet<P: Place>(one: Segment<P>, other: Segment<P>) -> bool {
    P::crossing(one, other).is_some()
        || one.from.on(other)
        || one.to.on(other)
        || other.from.on(one)
        || other.to.on(one)
}

/// Nothing of `a` leaves `b`: its edges do not, and `b` has no border (of a hole, say) inside `a`.
pub fn within<P: Place>(a: &Figure<P>, b: &Figure<P>) -> bool {
    if b.polygons.is_empty() && !a.polygons.is_empty() {
        return false;
    }
    let encloses = |place: P| a.polygons.iter().any(|polygon| polygon.encloses(place));
    a.chains().all(|chain| witnesses(chain, b).all(|place| b.covers(place)))
        && (a.polygons.is_empty() || !b.chains().any(|chain| witnesses(chain, a).any(encloses)))
}

/// Enough places of a chain to know, of the whole chain, on which side of the figure's borders it is: its first,
/// and one of each piece into which the borders cut its edges.
fn witnesses<P: Place>(chain: &[P], figure: &Figure<P>) -> impl Iterator<Item = P> {
    chain.first().copied().into_iter().chain(segments(chain).flat_map(|edge| pieces(edge, figure)))
}

/// Nothing for an edge that no border touches: it is where the edge before it was.
fn pieces<P: Place>(edge: Segment<P>, figure: &Figure<P>) -> Vec<P> {
    let bundle = Bundle::new(&[edge]);
    let near = figure.bundles().iter().filter(|other| other.may_meet(&bundle)).flat_map(|other| &other.edges);
    let mut touched = false;
    let mut stops = vec![edge.from, edge.to];
    for &other in near {
        touched |= meet(edge, other);
        stops.extend(P::crossing(edge, other));
        stops.extend([other.from, other.to].into_iter().filter(|end| end.on(edge)));
    }
    if touched { middles(edge, stops) } else { Vec::new() }
}

fn middles<P: Place>(edge: Segment<P>, mut stops: Vec<P>) -> Vec<P> {
    stops.sort_by(|a, b| a.progress(edge).total_cmp(&b.progress(edge)));
    let pairs = stops.iter().zip(stops.iter().skip(1)).filter(|(from, to)| !from.same(**to));
    pairs.map(|(from, to)| from.middle(*to)).collect()
}

pub fn distance<P: Place>(a: &Figure<P>, b: &Figure<P>) -> f64 {
    if intersects(a, b) {
        return 0.0;
    }
    if let (Some(from), Some(to)) = (a.only_point(), b.only_point()) {
        return from.gap(Segment { from: to, to }, f64::INFINITY);
    }
    let pairs =
        a.bundles().iter().flat_map(|one| b.bundles().iter().map(move |other| (one.gap_min(other), one, other)));
    let mut pairs = pairs.collect::<Vec<_>>();
    pairs.sort_by(|x, y| x.0.total_cmp(&y.0));
    let mut best = f64::INFINITY;
    for (bound, one, other) in pairs {
        if bound >= best {
            break; // all that follow are at least as far
        }
        best = nearer(one, other, best);
    }
    best
}

/// The distance between two bundles, or `best` if that is less. Edges that do not cross are nearest at an end of
/// one of them: these are looked for with the cheap bound, then measured where the bound leaves a chance.
fn nearer<P: Place>(one: &Bundle<P>, other: &Bundle<P>, best: f64) -> f64 {
    let bounded = || ends(one, other).chain(ends(other, one)).map(|(place, edge)| (place.gap_min(edge), place, edge));
    let Some((bound, place, edge)) = bounded().min_by(|x, y| x.0.total_cmp(&y.0)) else { return best };
    if bound >= best {
        return best;
    }
    let first = best.min(place.gap(edge, best));
    bounded().fold(
        first,
        |best, (bound, place, edge)| {
            if bound < best { best.min(place.gap(edge, best)) } else { best }
        },
    )
}

/// Every end of one's edges with every edge of the other.
fn ends<P: Place>(one: &Bundle<P>, other: &Bundle<P>) -> impl Iterator<Item = (P, Segment<P>)> {
    // Each edge begins where the one before it ends.
    let last = one.edges.last().map(|edge| edge.to);
    let places = one.edges.iter().map(|edge| edge.from).chain(last);
    places.flat_map(|place| other.edges.iter().map(move |&edge| (place, edge)))
}
