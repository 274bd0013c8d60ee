import Alamofire

// Samples of the comments on cookies; see `SampleTests`.

private func strictCookies() {
  for cookie in HTTPCookieStorage.shared.cookies ?? [] where cookie.sameSitePolicy == .sameSiteStrict {
    print(cookie.name)
  }
}
