function bulkImport(documents) {
    var collection = getContext().getCollection();
    var link = collection.getSelfLink();
    var count = 0;

    if (!documents || !Array.isArray(documents)) throw new Error("The documents are an array.");
    if (documents.length === 0) return answer();
    next();

    function next() {
        var isAccepted = collection.createDocument(link, documents[count], created);
        // The time limit is near: the caller continues with the rest.
        if (!isAccepted) answer();
    }

    function created(error) {
        if (error) throw error;
        count++;
        if (count === documents.length) answer();
        else next();
    }

    function answer() {
        getContext().getResponse().setBody(count);
    }
}
