/// Routes that send the client elsewhere.
extension Routes {
  var redirects: Routes {
    adding("/redirect/{count}") { request, parameters in
      let isAbsolute = request.queryValue("absolute")?.lowercased() == "true"
      return Self.redirect(request, parameters[0], name: "redirect", isAbsolute: isAbsolute)
    }
    .adding("/relative-redirect/{count}") { request, parameters in
      Self.redirect(request, parameters[0], name: "relative-redirect", isAbsolute: false)
    }
    .adding("/absolute-redirect/{count}") { request, parameters in
      Self.redirect(request, parameters[0], name: "absolute-redirect", isAbsolute: true)
    }
    .adding("/redirect-to") { request, _ in
      let form = PercentCoding.pairs(request.bodyText)
      func value(_ name: String) -> String? {
        request.queryValue(name) ?? form.first { $0.name == name }?.value
      }
      guard let url = value("url") else { return .refusal("there is no url") }
      let status = value("status_code").flatMap { Int($0) } ?? 302
      return .redirect(to: url, status: (300..<400).contains(status) ? status : 302)
    }
  }

  private static func redirect(
    _ request: RecordedRequest, _ text: String, name: String, isAbsolute: Bool
  ) -> Reply {
    guard let count = RequestBodyDecoder.decimal(text), count >= 1 else {
      return .refusal("\(text) is no number of redirects")
    }
    let path = count == 1 ? "/get" : "/\(name)/\(count - 1)"
    guard isAbsolute else { return .redirect(to: path) }
    let query = name == "redirect" && count > 1 ? "?absolute=true" : ""
    return .redirect(to: EchoDocument(request).absoluteURL(of: path + query))
  }
}
