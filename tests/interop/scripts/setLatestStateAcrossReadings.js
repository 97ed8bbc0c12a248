function setLatestStateAcrossReadings(readingId) {
    var collection = getContext().getCollection();
    var reading = collection.getAltLink() + "/docs/" + readingId;

    must(collection.readDocument(reading, {}, function (error, found) {
        if (error) throw error;
        must(collection.queryDocuments(collection.getSelfLink(), "SELECT * FROM c WHERE c.id = 'state'", {}, function (error, states) {
            if (error) throw error;
            update(found, states[0] || { id: "state", deviceId: found.deviceId, readings: 0, total: 0 });
        }));
    }));

    function update(found, state) {
        state.readings += 1;
        state.total += found.metricValue;
        state.latest = found.id;
        state.latestValue = found.metricValue;
        must(collection.upsertDocument(collection.getSelfLink(), state, {}, function (error, written) {
            if (error) throw error;
            getContext().getResponse().setBody(written);
        }));
    }

    function must(isAccepted) {
        if (!isAccepted) throw new Error("The server accepted no more work.");
    }
}
