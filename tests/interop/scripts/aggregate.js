function aggregate(property) {
    var total = { count: 0, sum: 0 };
    page();

    function page(continuation) {
        var isAccepted = __.queryDocuments(__.getSelfLink(), "SELECT * FROM c", { pageSize: 50, continuation: continuation },
            function (error, documents, options) {
                if (error) throw error;
                documents.filter(d => typeof d[property] === "number").forEach(function (d) {
                    total.count++;
                    total.sum += d[property];
                });
                if (options.continuation) page(options.continuation);
                else __.response.setBody({ count: total.count, sum: total.sum, mean: total.count && total.sum / total.count });
            });
        if (!isAccepted) throw new Error(ErrorCodes.RetryWith, "Too many documents for one call.");
    }
}
