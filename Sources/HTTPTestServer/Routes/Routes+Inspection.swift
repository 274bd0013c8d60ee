/// Routes that describe the request.
extension Routes {
  var inspection: Routes {
    var routes =
      self
      .adding("/get", methods: ["GET"]) { request, _ in .json(.object(EchoDocument(request).basics)) }
      .adding("/headers", methods: ["GET"]) { request, _ in
        .json(.object([("headers", EchoDocument(request).headers)]))
      }
      .adding("/ip", methods: ["GET"]) { _, _ in .json(.object([("origin", .string("127.0.0.1"))])) }
      .adding("/user-agent", methods: ["GET"]) { request, _ in
        let agent = request.header("User-Agent").map { JSONValue.string($0) } ?? .null
        return .json(.object([("user-agent", agent)]))
      }
      .adding("/anything/**") { request, _ in
        .json(.object(EchoDocument(request).everything(withMethod: true)))
      }
      .adding("/echo", methods: ["POST", "PUT", "PATCH", "DELETE", "GET"]) { request, _ in
        Reply(
          headers: [.contentType(request.header("Content-Type") ?? "application/octet-stream")],
          body: .bytes(request.body))
      }
      .adding("/upload-sink", methods: ["POST", "PUT", "PATCH"], requestBody: .counted) { request, _ in
        .json(.object([("received", .int(request.bodyLength))]))
      }
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
      routes = routes.adding("/\(method.lowercased())", methods: [method]) { request, _ in
        .json(.object(EchoDocument(request).everything(withMethod: false)))
      }
    }
    return routes
  }
}
