function bulkDelete(query) {
    var collection = getContext().getCollection();
    var link = collection.getSelfLink();
    var response = getContext().getResponse();
    var result = { deleted: 0, continuation: true };

    if (!query) throw new Error("Which documents? The query is missing.");
    find();

    function find(continuation) {
        var isAccepted = collection.queryDocuments(link, query, { continuation: continuation }, function (error, found, options) {
            if (error) throw error;
            if (found.length > 0) remove(found);
            else if (options.continuation) find(options.continuation);
            else done();
        });
        if (!isAccepted) response.setBody(result);
    }

    function remove(documents) {
        if (documents.length === 0) return find();
        var isAccepted = collection.deleteDocument(documents[0]._self, {}, function (error) {
            if (error) throw error;
            result.deleted++;
            documents.shift();
            remove(documents);
        });
        if (!isAccepted) response.setBody(result);
    }

    function done() {
        result.continuation = false;
        response.setBody(result);
    }
}
