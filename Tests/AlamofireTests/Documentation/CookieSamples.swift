import Alamofire

// Samples of the documentation as they stand there.

private func strictCookies() {
  for cookie in HTTPCookieStorage.shared.cookies ?? [] where cookie.sameSitePolicy == .sameSiteStrict {
    print(cookie.name)
  }
}
