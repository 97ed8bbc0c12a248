function validateItem() {
    var request = getContext().getRequest();
    var item = request.getBody();

    if (!item.name) throw new Error(ErrorCodes.BadRequest, "An item needs a name.");
    if (!("timestamp" in item)) item.timestamp = new Date().getTime();
    request.setBody(item);
}
