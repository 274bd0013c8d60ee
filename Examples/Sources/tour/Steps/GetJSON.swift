import Alamofire

private struct Answer: Decodable, Sendable {
  struct Slideshow: Decodable, Sendable {
    struct Slide: Decodable, Sendable {
      let title: String
    }

    let title: String
    let author: String
    let slides: [Slide]
  }

  let slideshow: Slideshow
}

let getJSON = Step("A GET, decoded") { stage in
  let answer = try await AF.request(stage.server.url("/json")).serializingDecodable(Answer.self).value

  stage.show("title", answer.slideshow.title)
  stage.show("author", answer.slideshow.author)
  stage.show("slides", answer.slideshow.slides.map(\.title).joined(separator: ", "))
}
