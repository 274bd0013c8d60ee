// So that tests can read the header fields of a request without a second import.
@_exported public import struct HTTPWire.HTTPHeader
