import Alamofire

// Samples of Cookies.md; see `SampleTests`.

private func show(_ value: Any) {}

private func reading(session: Session) {
  let storage = session.sessionConfiguration.httpCookieStorage
  for cookie in storage?.cookies ?? [] {
    print(cookie.name, cookie.sameSitePolicy?.rawValue ?? "none")
  }
}

private func adding(url: URL) {
  let configuration = URLSessionConfiguration.af.ephemeral
  let session = Session(configuration: configuration)

  let properties: [HTTPCookiePropertyKey: Any] = [
    .name: "theme", .value: "dark", .domain: "example.com", .path: "/",
  ]
  if let cookie = HTTPCookie(properties: properties) {
    configuration.httpCookieStorage?.setCookie(cookie)
  }
  show(session)
}

private func field() {
  let request = AF.request("https://example.com/", headers: ["Cookie": "theme=dark"])
  show(request)
}

private func without() {
  let request = AF.request("https://example.com/") { $0.httpShouldHandleCookies = false }
  show(request)
}
