import Foundation

/// Third-party readers of multipart bodies: Python packages in `.build/venv`.
enum MultipartReader: String, CaseIterable {
  case werkzeug
  case pythonMultipart

  struct Part: Decodable, Equatable {
    var name: String
    /// `nil` for a plain field.
    var fileName: String?
    var type: String?
    var body: Data
  }

  /// Returns the parts of a body in order. Readers disagree whether `%22` is a quotation mark; here it is not.
  func parts(of body: URL, contentType: String) async throws -> [Part] {
    let run = try await CommandRun([
      PythonEnvironment.program, "-I", "-c", Self.script, rawValue, contentType, body.path,
    ])
    guard run.status == 0 else {
      throw ServerFailure(description: "\(rawValue) does not read it:\n\(run.errors)")
    }
    return try JSONDecoder().decode([Part].self, from: run.output)
  }

  private static let script = """
    import base64, json, sys

    reader, content_type, path = sys.argv[1:]
    parts = []

    def add(name, file_name, kind, body):
        quoted = lambda text: None if text is None else text.replace('"', '%22')
        body = base64.b64encode(body).decode()
        parts.append({'name': quoted(name), 'fileName': quoted(file_name), 'type': kind, 'body': body})

    # Read as it would come from a network, in pieces that end anywhere.
    def chunks(size=1021):
        with open(path, 'rb') as file:
            while chunk := file.read(size):
                yield chunk

    def read_with_werkzeug():
        from werkzeug.http import parse_options_header
        from werkzeug.sansio.multipart import Data, Epilogue, Field, File, MultipartDecoder, NeedData
        boundary = parse_options_header(content_type)[1]['boundary']
        decoder = MultipartDecoder(boundary.encode())
        part = None
        for chunk in [*chunks(), None]:
            decoder.receive_data(chunk)
            while not isinstance(event := decoder.next_event(), NeedData):
                if isinstance(event, (Field, File)):
                    part, body = event, bytearray()
                elif isinstance(event, Data):
                    body += event.data
                    if not event.more_data:
                        add(part.name, getattr(part, 'filename', None), part.headers.get('content-type'), body)
                elif isinstance(event, Epilogue):
                    return
        raise ValueError('the form has no end')

    def read_with_python_multipart():
        from python_multipart.multipart import MultipartParser, parse_options_header
        boundary = parse_options_header(content_type)[1][b'boundary']
        state = {}

        def begin():
            state.update(fields={}, name=b'', value=b'', body=bytearray())

        def collect(key):
            def collected(data, start, end):
                state[key] += data[start:end]
            return collected

        def field_end():
            state['fields'][state['name'].decode().lower()] = state['value']
            state.update(name=b'', value=b'')

        def part_end():
            fields = state['fields']
            options = parse_options_header(fields['content-disposition'])[1]
            text = lambda value: None if value is None else value.decode()
            add(text(options[b'name']), text(options.get(b'filename')), text(fields.get('content-type')), state['body'])

        parser = MultipartParser(boundary, {
            'on_part_begin': begin, 'on_part_data': collect('body'), 'on_part_end': part_end,
            'on_header_field': collect('name'), 'on_header_value': collect('value'), 'on_header_end': field_end,
            'on_end': lambda: state.update(ended=True)})
        for chunk in chunks():
            if parser.write(chunk) != len(chunk):
                raise ValueError('not all of the form was read')
        parser.finalize()
        if not state.get('ended'):
            raise ValueError('the form has no end')

    {'werkzeug': read_with_werkzeug, 'pythonMultipart': read_with_python_multipart}[reader]()
    json.dump(parts, sys.stdout)
    """
}
